"""``trained``: the runs of a Spec, from committed weights, the cache, or a training here and now.

Several experiments ask different questions about the same weights: the first that needs them pays.
"""

import dataclasses
from pathlib import Path

from experiments.models import runs, training
from experiments.models.named import MODELS
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab import hosts, safe_files
from lsa_lab.status import refuse_divergence


def trained(spec: Spec, label: str, *, retrain: bool = False, progress=None) -> Runs:
    """Written weights if the Spec is a named one of the laptop or paper tier and they are there,
    unless ``retrain``; else those that the cache has of this Spec and this code; else new ones."""
    for tier in () if retrain else training.TIERS:
        for name, named in MODELS[tier].items():
            file = training.file_of(name, tier)
            if spec == named and file.exists():
                return _read(file, spec, f"--tier {tier} {name!r}")
    files = training.cached(spec)
    assert files.checkpoint is not None
    turn = Path(files.checkpoint).with_suffix(f".{hosts.index()}-of-{hosts.count()}")
    with safe_files.owned(turn, wait=True):  # another experiment may be training the same
        run = training.train(spec, label, files=files, progress=progress)
    refuse_divergence(run.status, label, files.checkpoint)
    return runs.collect(spec, run)


def _read(file: Path, spec: Spec, words: str) -> Runs:
    try:
        read = runs.read(file, spec)
    except ValueError as error:
        raise ValueError(
            f"{error}: restore it, renew it with python -m experiments.models.training {words}, "
            "or train here with retrain=True (--config.retrain True)"
        ) from None
    return dataclasses.replace(read, initial=training.initial(spec))
