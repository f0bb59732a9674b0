"""Compute, save, judge and draw. Nothing heavy is imported before it is needed.

A run is judged and drawn in a folder beside its own; only then do its files take their places, and
those whose contents are the same are left alone.
"""

import dataclasses
import hashlib
import json
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress

from lsa_lab import results
from lsa_lab.claims import Claim, judge
from lsa_lab.harness import process, style
from lsa_lab.harness.laboratory import TIERS, Experiment
from lsa_lab.harness.overrides import RefusalError
from lsa_lab.harness.progress import Clock, bars

if TYPE_CHECKING:
    import xarray as xr

FIGURES = Path("figures")  # in the working folder
_LONGEST_NAME = 80  # of the folder of a changed configuration


@dataclass(frozen=True)
class Job:
    """One experiment at one configuration, and the folder that receives its files."""

    experiment: Experiment
    tier: str
    config: Any
    folder: Path

    @property
    def checkpoints(self) -> Path:
        """A folder for this configuration alone: another one cannot be resumed by mistake."""
        text = json.dumps(results.plain(self.config), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return process.cache() / "checkpoints" / f"{self.experiment.name}-{digest}"

    @property
    def staging(self) -> Path:
        """Where the files lie until all of them are there."""
        return self.folder.with_name(f".{self.folder.name}.new")


@dataclass(frozen=True)
class Outcome:
    """What a run left, beside what lay in its folder before."""

    facts: dict
    same: bool | None  # to the bit; None where there was no result
    moved: tuple[str, ...]  # "id: old verdict, now new verdict"


class Unfinished(KeyboardInterrupt):
    """Ctrl-C, with the jobs that are not done."""

    def __init__(self, jobs: list[Job]):
        super().__init__()
        self.jobs = jobs


class NotJudgedError(Exception):
    """A new result that cannot be judged or drawn; the message says where it lies."""


def folder_of(
    experiment: Experiment, tier: str, out: Path | None = None, config: Any = None
) -> Path:
    """figures/NAME, figures/NAME/paper; smoke goes to the cache unless ``out`` is given.

    A ``config`` that is not the tier's has a folder of its own in there, named for what differs.
    """
    root = out or (process.cache() / "smoke" if tier == "smoke" else FIGURES)
    folder = root / experiment.name
    folder = folder / "paper" if tier == "paper" else folder
    if config is None or config == experiment.tiers[tier]:
        return folder
    here, declared = results.plain(config), results.plain(experiment.tiers[tier])
    changes = [f"{key}={_word(here[key])}" for key in here if here[key] != declared[key]]
    name = ",".join(changes)
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name[: _LONGEST_NAME - 9]}-{digest}"
    return folder / name


def changed_folders(experiment: Experiment, root: Path | None = None) -> list[Path]:
    """The folders of results whose configuration is no tier's, in ``folder_of``'s places."""
    tops = [folder_of(experiment, tier, root) for tier in TIERS]
    inside = {path.parent for top in tops for path in top.glob("*/config.json")}
    return sorted(inside - set(tops))


def last_run(folder: Path) -> dict | None:
    """What config.json tells, without opening the result."""
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def run(jobs: list[Job]) -> int:
    """Carry the jobs out, one after the other; how many results could not be judged."""
    console = Console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    clock = Clock([(last_run(job.folder) or {}).get("wall_time") for job in jobs])
    outcomes, failed = {}, 0
    with bars(console) as progress:
        overall = progress.add_task("all", total=len(jobs), clock=clock) if len(jobs) > 1 else None
        for i, job in enumerate(jobs):
            clock.begin()
            name = job.experiment.name
            try:
                outcomes[name] = run_one(job, progress)
            except KeyboardInterrupt:
                raise Unfinished(jobs[i:]) from None
            except NotJudgedError as error:
                say(f"error: {error}")
                failed += 1
                continue
            finally:
                for task in progress.task_ids:  # of the experiment that is over
                    if task != overall:
                        progress.remove_task(task)
            if overall is not None:
                progress.advance(overall)
            summary = describe(outcomes[name].facts)
            say(f"{name} ({job.tier}): {summary}; {job.folder / 'figure.pdf'}")
    if outcomes:
        say(comparison(outcomes))
    return failed


def run_one(job: Job, progress: Progress | None = None) -> Outcome:
    """Compute, save, read back, judge and draw; then put the files in their places."""
    experiment, staging = job.experiment, job.staging
    resumed = job.checkpoints.exists() and any(job.checkpoints.iterdir())
    job.checkpoints.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    dataset = experiment.door("compute").compute(
        job.config, progress=progress, checkpoints=job.checkpoints
    )
    # A run taken up from a checkpoint does not know how long its first part took.
    wall_time = None if resumed else time.perf_counter() - start
    shutil.rmtree(staging, ignore_errors=True)
    results.save(dataset, staging / "result.nc", config=job.config, wall_time=wall_time)
    # From here on only the file counts: what is judged and drawn can be judged and drawn again.
    try:
        claims = judged(experiment, results.load(staging / "result.nc", config=job.config))
        draw(experiment, staging)
    except Exception as error:
        raise NotJudgedError(
            f"{experiment.name} was computed but not judged: {error}; the new result is "
            f"{staging / 'result.nc'}, what lay in {job.folder} is untouched"
        ) from error
    facts = {
        "experiment": experiment.name,
        "tier": job.tier,
        "config": results.plain(job.config),
        "wall_time": wall_time,
        "verdicts": {f"{experiment.name}.{claim.id}": claim.verdict for claim in claims},
    }
    outcome = _compared(job, facts)
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    results.write(staging / "config.json", f"{text}\n".encode())
    _put(staging, job.folder, leave={"result.nc", "config.json"} if _unmoved(outcome) else set())
    shutil.rmtree(job.checkpoints)
    return outcome


def judged(experiment: Experiment, dataset: "xr.Dataset") -> list[Claim]:
    """Every statement of the configuration that was run, judged by the samples of the Dataset."""
    doors = experiment.door("config"), experiment.door("claims")
    if hasattr(doors[1], "claims"):
        return [_short(claim, experiment.name) for claim in doors[1].claims(dataset)]
    statements = doors[0].statements(results.config_of(dataset))
    return judge(statements, doors[1].samples(dataset))


def check_statements(experiment: Experiment, config: Any) -> None:
    """Refuse statements that cannot be judged before anything is computed for them."""
    door = experiment.door("config")
    try:
        if hasattr(door, "statements"):
            door.statements(config)
    except ValueError as error:
        raise RefusalError(f"{experiment.name}: {error}") from None


def _short(claim: Claim, name: str) -> Claim:
    return dataclasses.replace(claim, id=claim.id.removeprefix(f"{name}."))


def draw(experiment: Experiment, folder: Path) -> None:
    """figure.pdf and figure.png, from result.nc alone."""
    dataset = results.load(folder / "result.nc")
    door = experiment.door("figure")
    with style.context():
        style.save(door.plot(dataset), folder)


def load(experiment: Experiment, tier: str, folder: Path) -> "xr.Dataset":
    """The Dataset of a tier's result; refused if it is another configuration's, key by key."""
    other = (last_run(folder) or {}).get("tier", tier)
    if other != tier:
        raise RefusalError(f"{folder} holds the {other} tier: run {experiment.name} --tier {tier}")
    try:
        return results.load(folder / "result.nc", config=experiment.tiers[tier])
    except ValueError as error:
        raise RefusalError(f"{experiment.name}: {error}; run it again") from None


def describe(facts: dict) -> str:
    """The wall time and the verdicts of config.json, as "12.3 s; 3 hold, 1 fail, 0 undecided"."""
    seconds = facts["wall_time"]
    spent = "resumed" if seconds is None else f"{seconds:.1f} s"
    return f"{spent}; {counts(list(facts['verdicts'].values()))}"


def counts(verdicts: list[str]) -> str:
    """As "3 hold, 1 fail, 0 undecided"."""
    words = {"holds": "hold", "fails": "fail", "undecided": "undecided"}
    return ", ".join(f"{verdicts.count(v)} {word}" for v, word in words.items())


def comparison(outcomes: dict[str, Outcome]) -> str:
    """How the new results stand to those that lay there before, in a few lines."""
    again = {name: outcome for name, outcome in outcomes.items() if outcome.same is not None}
    if not again:
        return "There was no earlier result to compare with."
    other = [name for name, outcome in again.items() if not outcome.same]
    moved = [f"{name}.{text}" for name, outcome in again.items() for text in outcome.moved]
    same = len(again) - len(other)
    lines = [f"{same} of {len(again)} results are the same to the bit as before, their files kept."]
    if other:
        lines.append(f"Other bits: {', '.join(other)}.")
    lines.append(f"Verdicts that moved: {'; '.join(moved) or 'none'}.")
    if not other and len(again) > 1:
        lines.append("Every number repeated, bit for bit: a rare thing between two machines.")
    return "\n".join(lines)


def _word(value: Any) -> str:
    """A value as part of a folder's name, [1, 2] as "1_2"."""
    text = json.dumps(value).strip('[]"').replace(", ", "_")
    return re.sub(r"[^\w.+-]+", "-", text)


def _compared(job: Job, facts: dict) -> Outcome:
    old = last_run(job.folder)
    if old is None or not (job.folder / "result.nc").exists():
        return Outcome(facts, None, ())
    contents = []
    for folder in (job.folder, job.staging):
        try:
            contents.append(results.load(folder / "result.nc").attrs["contents_sha256"])
        except ValueError:  # the old one is damaged
            contents.append(None)
    same = contents[0] == contents[1] and old["config"] == facts["config"]
    before, now = old["verdicts"], facts["verdicts"]
    moved = [
        f"{key.partition('.')[2]}: {before.get(key, 'not judged')}, now {now.get(key, 'dropped')}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    ]
    return Outcome(facts, same, tuple(moved))


def _unmoved(outcome: Outcome) -> bool:
    return bool(outcome.same) and not outcome.moved


def _put(staging: Path, folder: Path, leave: set[str]) -> None:
    """Every file in its place, one atomic step each; the same bytes are not written again."""
    for new in sorted(staging.iterdir()):
        old = folder / new.name
        if new.name in leave and old.exists():
            continue
        content = new.read_bytes()
        if not old.exists() or old.read_bytes() != content:
            results.write(old, content)
    shutil.rmtree(staging)
