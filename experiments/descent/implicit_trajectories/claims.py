"""What `implicit_trajectories` judges: distances of the layers of trained models from the steps of
the algorithms fitted to them.

A distance is |∂ŷ/∂x_query - w|, averaged over prompts, over the average length of the former; layer
t stands beside step t.
"""

from functools import partial

import numpy as np

from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS
from experiments.descent.specs import spec_of
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import best_elsewhere

DISTANCE = 0.1  # of the last layer to the algorithm that it is said to follow

WELL_TRAINED = "well-trained models with noise, before models of 1 600 and 1 000 steps without"


def distances(dataset, model, algorithm) -> np.ndarray:  # [R, L]
    """|∂ŷ_t/∂x_query - w_t| over the mean |∂ŷ_t/∂x_query|: layer t beside step t, from 1 on."""
    size = dataset["size"].sel(model=model).transpose("run", "layer").values
    return _step_by_step(dataset.sensitivity, model, algorithm) / size[:, 1:]


def last_distance(dataset, model, algorithm) -> np.ndarray:  # [R]
    return distances(dataset, model, algorithm)[:, -1]


def nearest(dataset, model) -> str:
    """The algorithm nearest to the last layer, by the mean over runs."""
    return min(ALGORITHMS, key=lambda name: last_distance(dataset, model, name).mean())


def least_distance(dataset, model) -> np.ndarray:  # [R]
    """The last layer's distance to the algorithm that is nearest to the other runs."""
    every = np.stack([last_distance(dataset, model, name) for name in ALGORITHMS], axis=1)
    return -best_elsewhere(-every)


def lead_of_plus_plus(dataset, rival) -> np.ndarray:  # [R]
    """The last linear layer's distance to a rival, the nearer of two kinds of descent or ridge,
    less that to GD++."""
    names = {"descent": ("preconditioned GD", "GD"), "ridge": ("ridge",)}[rival]
    least = np.min([last_distance(dataset, "linear", name) for name in names], axis=0)
    return least - last_distance(dataset, "linear", "GD++")


def _step_by_step(measured, model, algorithm) -> np.ndarray:  # [R, L]
    pairs = measured.sel(model=model, algorithm=algorithm).transpose("run", "layer", "step")
    return np.diagonal(pairs.values, 0, 1, 2)[:, 1:]


def statements(config) -> tuple[Statement, ...]:
    seeds = spec_of(config, MODELS["linear"]).training.seeds
    row = partial(Statement, redrawn=f"{seeds} runs of the shared models, 12 others before")
    return (
        row(
            "linear",
            "von Oswald et al. 2212.07677, in our setting",
            "What a trained linear stack computes is a run of GD++",
            "distance to GD++ at the last layer",
            at_most=DISTANCE,
            note="ridge, which takes no steps, is nearer: see not_ridge",
            revision=WELL_TRAINED,
            sample=lambda d: last_distance(d, "linear", "GD++"),
        ),
        row(
            "not_a_rival",
            "modelled on von Oswald et al. 2212.07677",
            "GD++ is nearer to the last linear layer than {rival} is",
            "the last layer's distance to the rival less that to GD++,",
            at_least=0.0,
            note="descent is the nearer of GD and preconditioned GD; ridge takes no steps",
            revision="descent was preconditioned GD alone, which fits worse on new prompts; ridge "
            f"was added; {WELL_TRAINED}",
            sample=lead_of_plus_plus,
            cells=grid("not_preconditioning not_ridge", rival=("descent", "ridge")),
            message="GD++ is nearer to the last linear layer than descent with or without fixed "
            "preconditioners, and than ridge regression, which takes no steps",
        ),
        row(
            "softmax",
            "modelled on A2 (2406.03768), A.2",
            "What trained softmax attention computes is what one of these algorithms does",
            "distance, at the last layer, to the algorithm that is nearest to the other runs,",
            at_most=DISTANCE,
            note="it is ridge, which takes no steps; GD++, fitted for longer, is 6 % away",
            revision="the algorithm is chosen on other runs; it was on the judged ones; "
            f"{WELL_TRAINED}",
            sample=lambda d: least_distance(d, "softmax"),
        ),
    )
