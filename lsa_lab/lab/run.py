"""One run of an experiment: compute, save, judge, draw, and write its page."""

import contextlib
import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.files import FileLockedError, cache_folder, lock_file, write_file
from lsa_lab.lab import registration, results
from lsa_lab.lab.catalogue import Experiment, UsageError
from lsa_lab.lab.progress import format_seconds, show_progress
from lsa_lab.lab.session import session
from lsa_lab.lab.sources import digest_function, digest_library


@dataclasses.dataclass(frozen=True)
class Job:
    """An experiment at one configuration, and the folder that receives its files."""

    experiment: Experiment
    tier: str
    config: Any
    folder: Path

    @property
    def changes(self) -> dict[str, Any]:
        """The fields in which the configuration differs from that of the tier."""
        return find_changes(self.experiment.load().TIERS[self.tier], self.config)


def find_changes(usual: Any, config: Any) -> dict[str, Any]:
    """Return the fields, by dotted name, in which a configuration differs from the usual one."""

    def flatten(values: Any, name: str = "") -> Iterator[tuple[str, Any]]:
        if isinstance(values, dict) and values:
            for key, value in values.items():
                yield from flatten(value, f"{name}.{key}" if name else key)
        else:
            yield name, values

    before = dict(flatten(results.plain_config(usual)))
    now = dict(flatten(results.plain_config(config)))
    return {name: value for name, value in now.items() if value != before.get(name)}


def choose_folder(experiment: Experiment, changes: dict[str, Any], out: Path) -> Path:
    """Return the folder of a run below ``out``: NAME, or one inside for a changed configuration."""
    name = ",".join(f"{key}={_word(value)}" for key, value in changes.items())
    if len(name) > 100:
        name = f"{name[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return out / experiment.name / name if name else out / experiment.name


def _word(value: Any) -> str:
    text = "_".join(map(_word, value)) if isinstance(value, list) else str(value)
    return "".join(c if c.isalnum() or c in "_.+-" else "-" for c in text)


def run(job: Job, *, publish: bool = False) -> dict[str, Any]:
    """Compute a job, or resume it, write its files, and return its record with the caption.

    With ``publish`` the files go to the folder of committed results; that takes the full tier as it
    is declared, and code as it is committed.
    """
    import jax

    module, experiment = job.experiment.load(), job.experiment
    facts = results.collect_facts(experiment.root)
    facts |= {"config": json.dumps(results.plain_config(job.config))}
    facts |= {"experiment": experiment.name, "package": experiment.package, "tier": job.tier}
    if job.tier == "full" and not job.changes:
        found = registration.find_current(experiment, job.config)
        facts["registration"] = json.dumps(found)
    if publish:
        _check_publishable(job.experiment, facts)
    parts = _parts_folder(job, module)
    folder = experiment.figures if publish else job.folder
    if jax.process_index() > 0:  # one of several processes that share the trainings
        _compute_dataset(job, module, parts)
        return {"caption": "computed for the first process", "claims": [], "seconds": 0.0}
    with _lock(parts), _lock(folder):
        content = _compute(job, module, parts, facts)
        record = write_result(experiment, module, content, folder)
        shutil.rmtree(parts, ignore_errors=True)
    return record


def _check_publishable(experiment: Experiment, facts: dict[str, Any]) -> None:
    if facts.get("dirty", 1):
        raise UsageError("--publish takes committed code: commit your changes first")
    if not json.loads(facts["registration"]):
        print(f"{experiment.name} is not registered: its claims will be exploratory")


def _parts_folder(job: Job, module: ModuleType) -> Path:
    """Return where finished parts are kept: for this configuration and code alone."""
    import jax

    identity = json.dumps(results.plain_config(job.config)) + jax.__version__
    identity += digest_function(module.compute, job.experiment.package) + digest_library()
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return cache_folder() / "runs" / f"{job.experiment.name}-{digest}"


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock_file(folder))
        except FileLockedError as error:
            raise UsageError(f"{error}") from None
        except OSError as error:
            raise UsageError(
                f"{folder.parent} cannot be written ({error.strerror}): choose another folder, by "
                "--out for results and LSA_LAB_CACHE for the cache"
            ) from None
        yield


def _compute(job: Job, module: ModuleType, parts: Path, facts: dict[str, Any]) -> bytes:
    """Return the netCDF file of the result; a finished one of the same code is read again."""
    finished, clock = parts / "result.nc", parts / "seconds"
    if finished.exists():
        print("  the computed result is there; it is judged and drawn again")
        return finished.read_bytes()
    parts.mkdir(parents=True, exist_ok=True)
    before = float(clock.read_text()) if clock.exists() else 0.0
    if before or any(parts.iterdir()):
        print(f"  resuming after {format_seconds(before)}", flush=True)
    start = time.monotonic()
    try:
        result = _compute_dataset(job, module, parts)
    finally:
        seconds = before + time.monotonic() - start
        with contextlib.suppress(OSError):
            write_file(clock, f"{seconds:.1f}".encode())
    content = results.encode(result, facts | {"seconds": round(seconds, 1)})
    write_file(finished, content)
    return content


def _compute_dataset(job: Job, module: ModuleType, parts: Path) -> Any:
    with show_progress() as progress, session(parts, progress):
        models = load_models(job, progress)
        result = module.compute(job.config, models)
    if models:
        described = {name: runs.describe() for name, runs in models.items()}
        result = result.copy()
        result.attrs["models"] = json.dumps(described)
    return result


def load_models(job: Job, progress: Any = None) -> dict[str, Any]:
    """Return the trained models that a configuration names.

    ``config.models`` is a mapping from names to values with ``load(label, progress) -> runs``,
    as ``experiments.models.specs.Spec`` is; runs have ``describe() -> dict``.
    """
    specs = getattr(job.config, "models", {})
    return {name: spec.load(name, progress) for name, spec in specs.items()}


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
    from lsa_lab.lab import pages, plotting

    result = results.decode(content, "result.nc")
    rows = judge(experiment, module, result)
    config = results.restore_config(module.Config, json.loads(result.attrs["config"]))
    with plotting.context():
        picture, caption = module.plot(result, config)
        caption = " ".join(caption.split())
        images = {f"figure.{kind}": plotting.encode(picture, kind) for kind in ("pdf", "png")}
    record = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "question": experiment.question,
        "theme": experiment.theme,
        "tier": result.attrs["tier"],
        "date": result.attrs["date"],
        "registered": json.loads(result.attrs.get("registration", "{}")).get("date", ""),
        "commit": result.attrs.get("commit", ""),
        "seconds": result.attrs["seconds"],
        "quick_seconds": _find_quick_seconds(experiment, result.attrs),
        "caption": caption,
        "families": {claim.id: claim.family for claim in module.CLAIMS},
        "claims": rows,
    }
    page = pages.render_result(experiment, record, module)
    files = {"result.nc": content, **images, "README.md": page.encode()}
    files["claims.json"] = (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()
    for name, data in files.items():
        write_file(folder / name, data)
    return record


def _find_quick_seconds(experiment: Experiment, facts: Mapping[Any, Any]) -> float | None:
    """Return the seconds of the quick tier: of this result, or of the last one in the cache."""
    if facts["tier"] == "quick":
        return float(facts["seconds"])
    folders = (cache_folder() / "figures" / experiment.name, experiment.figures)
    for folder in folders:
        with contextlib.suppress(UsageError):
            return results.load_record(folder)["quick_seconds"]
    return None


def write_panel(module: ModuleType, result: Any, letter: str, folder: Path) -> None:
    """Write one panel of the figure as panel_LETTER.pdf and .png."""
    from lsa_lab.lab import plotting

    config = results.restore_config(module.Config, json.loads(result.attrs["config"]))
    with plotting.context():
        picture, _ = module.plot(result, config)
        try:
            plotting.keep_panel(picture, letter)
        except ValueError as error:
            raise UsageError(str(error)) from None
        for kind in ("pdf", "png"):
            write_file(folder / f"panel_{letter}.{kind}", plotting.encode(picture, kind))
