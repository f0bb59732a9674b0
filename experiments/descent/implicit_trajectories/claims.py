"""What the statements of `implicit_trajectories` are judged by."""

import numpy as np

from experiments.descent.implicit_trajectories.compute import PATHS
from experiments.descent.implicit_trajectories.config import CLAIMS
from experiments.models.stacks import MODELS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def beside(dataset, name, algorithm):  # -> [R, L], [R, L]
    """Layer t beside step t from t = 1 on: the relative distance of sensitivities, the cosine."""
    there = dataset.sel(model=name, algorithm=algorithm).transpose("run", "layer", "step")
    both = [np.diagonal(there[x].values, 0, 1, 2)[:, 1:] for x in ("sensitivity", "cosine")]
    return both[0] / there["size"].values[:, 1:], both[1]


def nearest(dataset, name):
    """The algorithm nearest to the last layer, by the mean over runs."""
    return min(PATHS, key=lambda one: beside(dataset, name, one)[0][:, -1].mean())


def claims(dataset):
    settings = results.config_of(dataset)
    last = {(m, a): beside(dataset, m, a)[0][:, -1] for m in MODELS for a in PATHS}
    there = dataset.sensitivity.sel(model="linear", algorithm="GD++")
    closest = there.transpose("run", "layer", "step").values[:, 1:].argmin(2)
    samples = {
        "plus_plus": last["linear", "GD++"] / last["linear", "GD"],
        "not_preconditioning": last["linear", "preconditioned GD"] - last["linear", "GD++"],
        "linear": last["linear", "GD++"],
        "direction": beside(dataset, "linear", "GD++")[1].min(1),
        "own_step": (closest == dataset.layer.values[None, 1:]).mean(1),
        "softmax": last["softmax", nearest(dataset, "softmax")],
        "newton": last["softmax", "GD"] - last["softmax", "Newton"],
    }
    made = []
    for name, (source, statement, measured, bound, criterion) in CLAIMS.items():
        value = getattr(settings, criterion) if isinstance(criterion, str) else criterion
        sign = {"at_most": "<=", "at_least": ">="}[bound]
        said = (source, statement, f"mean {measured} {sign} {value}", samples[name])
        made.append(about_the_mean(f"implicit_trajectories.{name}", *said, **{bound: value}))
    return made
