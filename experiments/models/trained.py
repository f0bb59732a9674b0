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


def trained(spec: Spec, label: str, *, retrain: bool = False, progress=None) -> Runs:
    """Committed weights if the Spec is a named one of the laptop tier, unless ``retrain``; else
    those that the cache has of this Spec and this code; else new ones."""
    for name, committed in MODELS["laptop"].items():
        file = training.file_of(name)
        if spec == committed and file.exists() and not retrain:
            try:
                read = runs.read(file, spec)
                return dataclasses.replace(read, initial=training.initial(spec))
            except ValueError as error:
                raise ValueError(
                    f"{error}: restore it, renew it with python -m experiments.models.training "
                    f"{name!r}, or train here with retrain=True (--config.retrain True)"
                ) from None
    files = training.cached(spec)
    assert files.checkpoint is not None
    turn = Path(files.checkpoint).with_suffix(f".{hosts.index()}-of-{hosts.count()}")
    with safe_files.owned(turn, wait=True):  # another experiment may be training the same
        return runs.collect(spec, training.train(spec, label, files=files, progress=progress))
