"""Compute, save, judge and draw. Nothing heavy is imported before it is needed."""

import hashlib
import importlib
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from experiments import process, style
from experiments.progress import Clock, bars
from lsa_lab import results

FIGURES = process.ROOT / "figures"


@dataclass(frozen=True)
class Job:
    """One experiment at one configuration, and the folder that receives its files."""

    name: str
    tier: str
    config: Any
    folder: Path

    @property
    def checkpoints(self) -> Path:
        """A folder for this configuration alone: another one cannot be resumed by mistake."""
        text = json.dumps(results.plain(self.config), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return process.cache() / "checkpoints" / f"{self.name}-{digest}"


class Unfinished(KeyboardInterrupt):
    """Ctrl-C, with the jobs that are not done."""

    def __init__(self, jobs: list[Job]):
        super().__init__()
        self.jobs = jobs


def folder_of(name: str, tier: str, out: Path | None = None) -> Path:
    """figures/NAME, figures/NAME/paper; smoke goes to the cache unless ``out`` is given."""
    root = out or (process.cache() / "smoke" if tier == "smoke" else FIGURES)
    return root / name / "paper" if tier == "paper" else root / name


def last_run(folder: Path) -> dict | None:
    """What config.json tells, without opening the result."""
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def run(jobs: list[Job]) -> None:
    """Carry the jobs out, one after the other."""
    console = Console()
    clock = Clock([(last_run(job.folder) or {}).get("wall_time") for job in jobs])
    with bars(console) as progress:
        overall = progress.add_task("all", total=len(jobs), clock=clock) if len(jobs) > 1 else None
        for i, job in enumerate(jobs):
            clock.begin()
            try:
                facts = run_one(job, progress)
            except KeyboardInterrupt:
                raise Unfinished(jobs[i:]) from None
            for task in progress.task_ids:  # of the experiment that is over
                if task != overall:
                    progress.remove_task(task)
            if overall is not None:
                progress.advance(overall)
            line = f"{job.name} ({job.tier}): {describe(facts)}; {job.folder / 'figure.pdf'}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def run_one(job: Job, progress: Progress | None = None) -> dict:
    """Compute, save, read back, judge and draw; what config.json then holds."""
    experiment = importlib.import_module(f"experiments.{job.name}")
    resumed = job.checkpoints.exists() and any(job.checkpoints.iterdir())
    job.checkpoints.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    dataset = experiment.compute(job.config, progress=progress, checkpoints=job.checkpoints)
    # A run taken up from a checkpoint does not know how long its first part took.
    wall_time = None if resumed else time.perf_counter() - start
    path = job.folder / "result.nc"
    results.save(dataset, path, config=job.config, wall_time=wall_time)
    # From here on only the file counts: what is judged and drawn can be judged and drawn again.
    claims = experiment.claims(results.load(path, config=job.config))
    draw(job.name, job.folder)
    facts = {
        "experiment": job.name,
        "tier": job.tier,
        "config": results.plain(job.config),
        "wall_time": wall_time,
        "verdicts": {claim.id: claim.verdict for claim in claims},
    }
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    results.write(job.folder / "config.json", f"{text}\n".encode())
    shutil.rmtree(job.checkpoints)
    return facts


def draw(name: str, folder: Path) -> None:
    """figure.pdf and figure.png, from result.nc alone."""
    experiment = importlib.import_module(f"experiments.{name}")
    dataset = results.load(folder / "result.nc")
    with style.context():
        style.save(experiment.plot(dataset), folder)


def describe(facts: dict) -> str:
    """The wall time and the verdicts of config.json, as "12.3 s; 3 hold, 1 fail, 0 undecided"."""
    seconds = facts["wall_time"]
    spent = "resumed" if seconds is None else f"{seconds:.1f} s"
    return f"{spent}; {counts(list(facts['verdicts'].values()))}"


def counts(verdicts: list[str]) -> str:
    """As "3 hold, 1 fail, 0 undecided"."""
    words = {"holds": "hold", "fails": "fail", "undecided": "undecided"}
    return ", ".join(f"{verdicts.count(v)} {word}" for v, word in words.items())
