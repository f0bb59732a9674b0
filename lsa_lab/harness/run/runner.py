"""Compute, save, judge and draw. Nothing heavy is imported before it is needed.

A run is judged and drawn in a folder beside its own; only then do its files take their places, and
those whose contents are the same are left alone.
"""

import hashlib
import importlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.draw import footer, pictures, style
from lsa_lab.harness.refusal import refused
from lsa_lab.harness.run import precision, process, records
from lsa_lab.harness.run.clock import Spent
from lsa_lab.harness.run.laboratory import TIERS, Experiment
from lsa_lab.harness.run.outcomes import Outcome, answer, compare
from lsa_lab.judging.claims import Claim, evidence, judge
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import provenance, results, safe_files

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure
    from rich.progress import Progress


@dataclass(frozen=True)
class Job:
    """One experiment at one configuration, and the folder that receives its files."""

    experiment: Experiment
    tier: str
    config: Any
    folder: Path

    @property
    def identity(self) -> str:
        """A word for one configuration of one experiment, such as "depth-1f0c92a7b3d4"."""
        text = json.dumps(results.plain(self.config), sort_keys=True)
        return f"{self.experiment.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def checkpoints(self) -> Path:
        """A folder for this configuration alone: another one cannot be resumed by mistake."""
        return process.cache() / "checkpoints" / self.identity

    @property
    def staging(self) -> Path:
        """Where the files lie until all of them are there; after a failure until the same is
        computed again."""
        return self.folder.with_name(f".{self.identity}.new")


class NotJudgedError(Exception):
    """A new result that cannot be judged, drawn or put in its place; the message says where it
    lies."""


def run_one(job: Job, progress: "Progress | None" = None) -> Outcome:
    """Compute, save, read back, judge and draw; then put the files in their places.

    Raises OwnedError where another process is computing the same, before anything is computed.
    """
    with safe_files.owned(job.checkpoints), safe_files.owned(job.folder):
        return _run_owned(job, progress)


def compute(
    job: Job, progress: "Progress | None", weights: dict[str, str] | None = None
) -> "xr.Dataset":
    """The Dataset of a job, from its checkpoints where there are any; the digests of the models
    that have one, in ``weights``."""
    precision.check()
    safe_files.make(job.checkpoints)
    door = job.experiment.door("compute")
    handed = {"progress": progress, "checkpoints": job.checkpoints}
    if not hasattr(job.config, "models"):
        return door.compute(job.config, **handed)
    models = job.experiment.resolve_models(job.config, progress)
    if weights is not None:
        weights |= {name: each.digest for name, each in models.items() if hasattr(each, "digest")}
    return door.compute(job.config, models, **handed)


def _origin(job: Job) -> dict[str, str | int]:
    """What a result is a result of, and the commit of the package that asks, as it is loaded."""
    package = importlib.import_module(job.experiment.package)
    commit = provenance.commit(Path(package.__file__ or ""))
    provenance.commit()  # the library's, asked before anything is computed
    own = {name.replace("git", "package"): value for name, value in commit.items()}
    names = {"experiment": job.experiment.name, "package": job.experiment.package}
    return {**names, "tier": job.tier, **own}


def _run_owned(job: Job, progress: "Progress | None") -> Outcome:
    staging, spent, origin = job.staging, Spent(job.checkpoints), _origin(job)
    weights: dict[str, str] = {}
    with spent.keep():
        dataset = compute(job, progress, weights)
        origin |= {"weights": json.dumps(weights)} if weights else {}
        if staging.is_symlink():
            staging.unlink()
        shutil.rmtree(staging, ignore_errors=True)
        file, wall_time = staging / "result.nc", spent.seconds
        facts = {"wall_time": wall_time, "start": spent.start, "memory": spent.memory}
        results.save(dataset, file, config=job.config, wall_time=wall_time, origin=origin)
        try:
            outcome = _publish(job, facts)
        except Exception as error:
            raise NotJudgedError(
                f"{job.experiment.name} was computed but not judged: {error}; the new result is "
                f"{file}, and this run goes on from its checkpoints"
            ) from error
    shutil.rmtree(job.checkpoints)
    return outcome


def _publish(job: Job, facts: dict) -> Outcome:
    """Judge and draw the result that lies in the staging folder, and put all in its place. Only the
    file counts: what is judged and drawn can be judged and drawn again."""
    experiment, staging, config = job.experiment, job.staging, results.plain(job.config)
    claims = judge_result(experiment, results.load(staging / "result.nc", config=job.config))
    draw(experiment, staging)
    names = {"experiment": experiment.name, "package": experiment.package, "tier": job.tier}
    facts = {**names, "config": config, **facts}
    judgement = records.judgement(experiment, config, claims, staging / "result.nc")
    outcome = compare(facts | judgement, staging, job.folder)
    caption = staging / "caption.txt"
    words = caption.read_text(encoding="utf-8") if caption.is_file() else ""
    outcome = replace(outcome, answer=answer(words, claims))
    if outcome.same and not outcome.moved:  # the file and what is told of its run stay
        kept = job.folder / "result.nc"
        facts = records.last_run(job.folder) or {}
        judgement["result"] = results.digest(kept)
        shutil.copyfile(kept, staging / "result.nc")
    records.write(staging, facts | judgement)
    order = sorted(staging.iterdir(), key=lambda path: (path.name == "config.json", path.name))
    safe_files.write_together({job.folder / path.name: path.read_bytes() for path in order})
    shutil.rmtree(staging)
    return outcome


def judge_result(experiment: Experiment, dataset: "xr.Dataset") -> list[Claim]:
    """Every statement of the configuration that was run, judged by the samples of the Dataset."""
    return judge(*evidence(experiment.door("claims"), dataset))


def check_statements(experiment: Experiment, config: Any) -> None:
    """Refuse statements that cannot be judged before anything is computed for them."""
    with refused(ValueError, before=f"{experiment.name}: "):
        cells_of(records.statements(experiment, config))


def drawings(experiment: Experiment, dataset: "xr.Dataset") -> "tuple[dict[str, Figure], str]":
    """The pictures of a result by the names of their files, and the caption of all of them. A
    panel's title is written for the numbers of a tier: those of a trial or of another configuration
    may say the contrary, and are drawn without it."""
    door, config = experiment.door("figure"), json.loads(dataset.attrs["config"])
    with style.context():
        by_name = dict(pictures.of_door(door, dataset))
    judged = [each for tier, each in experiment.tiers.items() if tier != TIERS[0]]
    if config not in map(results.plain, judged):
        for picture in by_name.values():
            pictures.keep_letters(picture)
    config = results.config_of(dataset)
    return by_name, footer.with_footer(door.caption(dataset), config, by_name.values())


def draw(
    experiment: Experiment, folder: Path, panel: str | None = None, captioned: bool = False
) -> list[Path]:
    """figure.pdf, figure.png and caption.txt, from result.nc alone, and files of each appendix that
    the figure's door has. In place of them one panel, by its letter, or captioned.pdf and
    captioned.png: the figure with its caption below it."""
    dataset = results.load(folder / "result.nc")
    by_name, caption = drawings(experiment, dataset)
    data = dataset.attrs["contents_sha256"]
    if panel is not None:
        return pictures.save_panel(list(by_name.values()), panel, folder, data)
    if captioned:
        pictures.save(pictures.with_caption(by_name["figure"], caption), folder, "captioned", data)
        return [folder / "captioned.pdf"]
    for stale in folder.glob("appendix*"):
        if stale.stem not in by_name:
            stale.unlink()
    for name, picture in by_name.items():
        pictures.save(picture, folder, name, data)
    results.write(folder / "caption.txt", f"{caption}\n".encode())
    return [folder / "figure.pdf"]


def load(experiment: Experiment, tier: str | None, folder: Path) -> "xr.Dataset":
    """The Dataset of a tier's result; refused if it is damaged or another configuration's, key by
    key. The tier is None of a changed configuration."""
    records.record_of(experiment, folder, tier)
    with refused(ValueError, before=f"{experiment.name}: ", after="; run it again"):
        config = None if tier is None else experiment.tiers[tier]
        dataset = results.load(folder / "result.nc", config=config)
    records.check_origin(experiment, dataset.attrs, folder, tier)
    return dataset
