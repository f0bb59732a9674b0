"""One run of an experiment: compute, save, judge, draw, and write its page."""

import contextlib
import dataclasses
import hashlib
import json
import shutil
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.files import FileLockedError, cache_folder, lock_file, write_file
from lsa_lab.lab import registration, results
from lsa_lab.lab.catalogue import Experiment, UsageError
from lsa_lab.lab.listing import expect_seconds
from lsa_lab.lab.progress import format_seconds, show_progress
from lsa_lab.lab.session import make_word, session
from lsa_lab.lab.sources import digest_function, digest_library
from lsa_lab.provenance import collect_facts


@dataclasses.dataclass(frozen=True)
class Job:
    """An experiment at one configuration, and the folder of all results."""

    experiment: Experiment
    tier: str
    config: Any
    out: Path

    @property
    def changes(self) -> dict[str, Any]:
        """The fields in which the configuration differs from that of the tier."""
        usual = results.plain_config(self.experiment.load().TIERS[self.tier])
        now = results.plain_config(self.config)
        return {name: value for name, value in now.items() if value != usual[name]}

    @property
    def folder(self) -> Path:
        """NAME, and for a changed configuration one inside it."""
        words = {key: make_word(str(value)).strip("_") for key, value in self.changes.items()}
        name = ",".join(f"{key}={word}" for key, word in words.items())
        if len(name) > 100:
            name = f"{name[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.out / self.experiment.name / name

    def load_models(self, progress: Any = None) -> dict[str, Any]:
        """Return the trained models that the configuration names, by name.

        ``config.models`` is a mapping from names to values with ``load(label, progress) -> runs``,
        as ``experiments.models.specs.Spec`` is; runs have ``describe() -> dict``.
        """
        specs = getattr(self.config, "models", {})
        return {name: spec.load(name, progress) for name, spec in specs.items()}


def run(job: Job, *, publish: bool = False) -> dict[str, Any]:
    """Compute a job, or resume it, and write its files.

    With ``publish`` the files go to the folder of committed results; that takes the full tier as it
    is declared, and code as it is committed. Returns the record of ``claims.json`` with the folder
    and the changes of the configuration.
    """
    import jax

    module, experiment, changes = job.experiment.load(), job.experiment, job.changes
    facts = collect_facts(experiment.root)
    facts |= {"config": json.dumps(results.plain_config(job.config))}
    facts |= {"experiment": experiment.name, "package": experiment.package, "tier": job.tier}
    if job.tier == "full" and not changes:
        found = registration.find_current(experiment, job.config)
        facts["registration"] = json.dumps(found)
    if publish and facts.get("dirty", 1):
        raise UsageError("--publish takes committed code: commit your changes first")
    if publish and not found:
        print(f"{experiment.name} is not registered: its claims will be exploratory")
    if not publish and job.out.resolve() == experiment.figures.parent.resolve():
        raise UsageError(f"--out {job.out} holds committed results: --publish writes these")
    parts, folder = _parts_folder(job, module), experiment.figures if publish else job.folder
    if jax.process_index() > 0:  # one of several processes that share the trainings
        _compute_dataset(job, module, parts)
        return {"caption": "computed for the first process", "claims": [], "seconds": 0.0}
    try:
        with lock_file(parts), lock_file(folder):
            content = _compute(job, module, parts, facts)
            record = write_result(experiment, module, content, folder)
            shutil.rmtree(parts, ignore_errors=True)
    except FileLockedError as error:
        raise UsageError(str(error)) from None
    return record | {"folder": str(folder), "changes": changes}


def _parts_folder(job: Job, module: ModuleType) -> Path:
    """Return where finished parts are kept: for this configuration and code alone."""
    import jax

    identity = json.dumps(results.plain_config(job.config)) + jax.__version__
    identity += digest_function(module.compute, job.experiment.package) + digest_library()
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return cache_folder() / "runs" / f"{job.experiment.name}-{digest}"


def _compute(job: Job, module: ModuleType, parts: Path, facts: dict[str, Any]) -> bytes:
    """Return the netCDF file of the result; a finished one of the same code is read again."""
    finished, clock = parts / "result.nc", parts / "seconds"
    if finished.exists():
        print("  the result was computed before; it is judged and drawn again")
        return finished.read_bytes()
    parts.mkdir(parents=True, exist_ok=True)
    before = float(clock.read_text()) if clock.exists() else 0.0
    if before:
        print(f"  resuming after {format_seconds(before)}", flush=True)
    start = time.monotonic()
    try:
        result = _compute_dataset(job, module, parts)
    finally:
        seconds = round(before + time.monotonic() - start, 1)
        with contextlib.suppress(OSError):
            write_file(clock, str(seconds).encode())
    content = results.encode(result, facts | {"seconds": seconds})
    write_file(finished, content)
    return content


def _compute_dataset(job: Job, module: ModuleType, parts: Path) -> Any:
    with show_progress() as progress, session(parts, progress):
        models = job.load_models(progress)
        result = module.compute(job.config, models)
    if models:
        result = result.copy()
        described = {name: runs.describe() for name, runs in models.items()}
        result.attrs["models"] = json.dumps(described)
    return result


def judge(experiment: Experiment, module: ModuleType, result: Any) -> list[dict[str, Any]]:
    """Return the rows of all claims on a result, with their registration."""
    rows = []
    for claim in module.CLAIMS:
        status = registration.find_status(claim, experiment.package, result.attrs)
        rows += [row | {"status": status} for row in claim.judge(result)]
    return rows


def write_result(
    experiment: Experiment, module: ModuleType, content: bytes, folder: Path
) -> dict[str, Any]:
    """Judge and draw a result, and write its files; nothing is written if either fails."""
    from lsa_lab.lab import pages

    result = results.decode(content, "result.nc")
    rows = judge(experiment, module, result)
    cached = cache_folder() / "figures" / experiment.name
    quick_seconds = expect_seconds(experiment, "quick", cached)
    if result.attrs["tier"] == "quick":
        quick_seconds = result.attrs["seconds"]
    pictures, caption = draw(module, result)
    record = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "question": experiment.question,
        "theme": experiment.theme,
        "tier": result.attrs["tier"],
        "date": result.attrs["date"],
        "registered": json.loads(result.attrs.get("registration", "{}")).get("date", ""),
        "commit": result.attrs.get("commit", ""),
        "seconds": result.attrs["seconds"],
        "quick_seconds": quick_seconds,
        "caption": " ".join(caption.split()),
        "families": {claim.id: claim.family for claim in module.CLAIMS},
        "claims": rows,
    }
    files = {f"figure.{kind}": picture for kind, picture in pictures.items()}
    files |= {"result.nc": content}
    files["README.md"] = pages.render_result(experiment, record, module).encode()
    files["claims.json"] = (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()
    for name, data in files.items():
        write_file(folder / name, data)
    return record


def draw(module: ModuleType, result: Any, panel: str = "") -> tuple[dict[str, bytes], str]:
    """Return the files of the figure, or of one panel, by kind, and the caption."""
    from lsa_lab.lab import plotting

    config = results.restore_config(module.Config, json.loads(result.attrs["config"]))
    with plotting.context():
        picture, caption = module.plot(result, config)
        if panel:
            plotting.keep_panel(picture, panel)
        return {kind: plotting.encode(picture, kind) for kind in ("pdf", "png")}, caption
