"""The models that a config names, as runs: from committed weights, from the cache, or trained here.

Several experiments ask different questions about the same weights: the first that needs them pays.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from experiments.models import runs, train
from experiments.models.named import MODELS, Named
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.files import lock_file
from lsa_lab.store import results
from lsa_lab.training.status import refuse_divergence


def resolve(models: Named, label: str, *, retrain: bool = False, progress=None) -> dict[str, Runs]:
    """{name: runs} of the models that an experiment names; they are handed to ``compute``.

    Written weights if the Spec is that of a named model of the laptop or paper tier and they are
    there, unless ``retrain``; else those that the cache has of this Spec and this code; else new
    ones, and before their training begins it is said which, why, and how long the named one took.
    """
    return {
        name: _trained(spec, name, f"{label}: {name}", retrain=retrain, progress=progress)
        for name, spec in models
    }


def _trained(spec: Spec, name: str, label: str, *, retrain: bool, progress) -> Runs:
    for tier in () if retrain else train.TIERS:
        for other, named in MODELS[tier].items():
            file = train.file_of(other, tier)
            if spec == named and file.exists():
                return _read(file, spec, f"--tier {tier} {other!r}")
    files = train.cached(spec)
    assert files.checkpoint is not None
    if not Path(files.checkpoint).exists():
        print(f"{label}: {_why_trained(spec, name, retrain)}", file=sys.stderr, flush=True)
    turn = Path(files.checkpoint).with_suffix("")
    with lock_file(turn, wait=True):  # another experiment may be training the same
        run = train.train(spec, label, files=files, progress=progress)
    refuse_divergence(run.status, label, files.checkpoint)
    return runs.collect(spec, run)


def _why_trained(spec: Spec, name: str, retrain: bool) -> str:
    """What is about to be trained, why, and how long the committed model of that name took."""
    recipe, named = spec.training, MODELS["laptop"].get(name)
    count = len(spec.architecture.rows) * recipe.seeds
    text = f"trained here, {count} runs of {recipe.steps} steps"
    if named is None:
        return f"{text}; no committed model has this name"
    changes = results.differences(results.plain(named), results.plain(spec)).split("; ")
    changes = "; ".join(changes[:2] + ["..."] * (len(changes) > 2))
    changes = changes.replace("in the file", "in the committed model")
    why = "a new training is asked for" if retrain else changes or "its weights are not there"
    seconds = _record(train.file_of(name)).get("seconds")
    took = f"; the committed one took {seconds:.0f} s" if seconds else ""
    return f"{text}: {why}{took}"


def _record(file: Path) -> dict[str, Any]:
    """What the provenance beside a file of weights says of its last training."""
    record, name = file.with_name("provenance.jsonl"), file.stem.replace("_", " ")
    lines = record.read_text("utf-8").splitlines() if record.exists() else []
    entries = [entry for entry in map(json.loads, lines) if entry.get("name") == name]
    return entries[-1] if entries else {}


def _read(file: Path, spec: Spec, words: str) -> Runs:
    try:
        read = runs.read(file, spec)
        if _record(file).get("digest", read.digest) != read.digest:
            raise ValueError(
                f"{file.name} has other weights than those that provenance.jsonl names"
            )
    except ValueError as error:
        raise ValueError(
            f"{error}: restore it, renew it with python -m experiments.models.train {words}, "
            "or train here with retrain=True in the configuration"
        ) from None
    return dataclasses.replace(read, initial=train.initial(spec))
