"""Distances of the layers of trained models from the steps of the algorithms fitted to them."""

import numpy as np

from experiments.descent.implicit_trajectories.config import ALGORITHMS
from lsa_lab.statistics import best_elsewhere


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    last = {name: distances(dataset, "linear", name)[:, -1] for name in ALGORITHMS}
    softmax = {name: distances(dataset, "softmax", name)[:, -1] for name in ALGORITHMS}
    return {
        "plus_plus": last["GD++"] / last["GD"],
        "not_preconditioning": np.minimum(last["preconditioned GD"], last["GD"]) - last["GD++"],
        "not_ridge": last["ridge"] - last["GD++"],
        "linear": last["GD++"],
        "direction": cosines(dataset, "linear", "GD++").min(1),
        "own_step": own_steps(dataset, "linear", "GD++").mean(1),
        "softmax": -best_elsewhere(-np.stack([*softmax.values()], axis=1)),
        "newton": softmax["GD"] - softmax["Newton"],
    }


def distances(dataset, model, algorithm) -> np.ndarray:  # [R, L]
    """|∂ŷ_t/∂x_query - w_t| over the mean |∂ŷ_t/∂x_query|: layer t beside step t, from 1 on."""
    size = dataset["size"].sel(model=model).transpose("run", "layer").values
    return _beside(dataset.sensitivity, model, algorithm) / size[:, 1:]


def cosines(dataset, model, algorithm) -> np.ndarray:  # [R, L]
    """The cosine of ∂ŷ_t/∂x_query and w_t, layer t beside step t, from 1 on."""
    return _beside(dataset.cosine, model, algorithm)


def own_steps(dataset, model, algorithm) -> np.ndarray:  # [R, L]
    """Whether the nearest step of the algorithm is the layer's own."""
    apart = dataset.sensitivity.sel(model=model, algorithm=algorithm)
    closest = apart.transpose("run", "layer", "step").values[:, 1:].argmin(2)
    return closest == dataset.layer.values[None, 1:]


def nearest(dataset, model) -> str:
    """The algorithm nearest to the last layer, by the mean over runs."""
    return min(ALGORITHMS, key=lambda name: distances(dataset, model, name)[:, -1].mean())


def _beside(measured, model, algorithm) -> np.ndarray:  # [R, L]
    pairs = measured.sel(model=model, algorithm=algorithm).transpose("run", "layer", "step")
    return np.diagonal(pairs.values, 0, 1, 2)[:, 1:]
