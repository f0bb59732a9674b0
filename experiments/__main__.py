"""``python -m experiments NAME... [--tier smoke|laptop|paper] [--out DIR]``: run experiments.

An experiment is here a folder with four modules: config, compute, claims and figure. Its result,
result.nc, and its figure are written into DIR/NAME, or else into .cache/old/NAME.
"""

import argparse
import hashlib
import importlib
import json
import shutil
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments import EXPERIMENTS
from lsa_lab.files import cache_folder
from lsa_lab.lab import settings

TIERS = ("smoke", "laptop", "paper")  # an experiment may lack the last
MODULES = {place.rpartition(".")[2]: f"experiments.{place}" for place in EXPERIMENTS}


def load(name: str, part: str) -> ModuleType:
    """Return a module of an experiment: config, compute, claims or figure."""
    return importlib.import_module(f"{MODULES[name]}.{part}")


def compute(name: str, config: Any, checkpoints: Path, progress: Any = None) -> Any:
    """Return the Dataset of an experiment, resumed from the checkpoints that are there."""
    from experiments.models.train import load_models

    models = ()
    if hasattr(config, "models"):
        models = (load_models(dict(config.models), name, progress),)
    checkpoints.mkdir(parents=True, exist_ok=True)
    compute = load(name, "compute").compute
    return compute(config, *models, progress=progress, checkpoints=checkpoints)


def judge(name: str, dataset: Any) -> list:
    """Return the judged claims of an experiment."""
    from lsa_lab.judging import claims

    return claims.judge(*claims.evidence(load(name, "claims"), dataset))


def run(name: str, tier: str, folder: Path, progress: Any = None) -> list:
    """Compute, save, judge and draw an experiment; return its judged claims."""
    from lsa_lab.harness.draw import pictures
    from lsa_lab.store import results

    config, began = load(name, "config").TIERS[tier], time.monotonic()
    text = json.dumps(results.plain(config), sort_keys=True)
    identity = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    checkpoints = cache_folder() / "checkpoints" / identity
    dataset = compute(name, config, checkpoints, progress)
    seconds = time.monotonic() - began
    results.save(dataset, folder / "result.nc", config=config, wall_time=seconds)
    shutil.rmtree(checkpoints)
    dataset = results.load(folder / "result.nc")
    claims = judge(name, dataset)
    for claim in claims:
        low, high = claim.interval
        number = f"{claim.value:.3g} [{low:.3g}, {high:.3g}]"
        print(f"{claim.verdict:9} {name}.{claim.id}: {claim.statement}: {number}")
    for file, picture in pictures.draw(load(name, "figure"), dataset).items():
        pictures.save(picture, folder, file)
    print(f"{name} ({tier}): {seconds:.0f} s; {folder / 'figure.pdf'}", flush=True)
    return claims


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(MODULES), metavar="NAME")
    parser.add_argument("--tier", choices=TIERS, default="laptop")
    parser.add_argument("--out", type=Path, default=cache_folder() / "old")
    arguments = parser.parse_args()
    settings.configure()
    for name in arguments.names:
        run(name, arguments.tier, arguments.out / name)
        settings.free_mappings()


if __name__ == "__main__":
    main()
