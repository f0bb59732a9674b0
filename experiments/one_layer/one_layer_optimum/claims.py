"""What `one_layer_optimum` judges: trained layers at the task, length and heads where worst."""

import numpy as np

from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import worst

SOURCE = "Zhang et al. 2306.09927, in our setting; with label noise derived here"


def worst_head_change(dataset):  # [R]
    """The relative change of the risk from the first number of heads, where its mean is largest."""
    excess = dataset.excess.transpose("run", ...)
    first = excess.isel(heads=0, drop=True)
    return worst((excess - first) / (1 + first), lambda runs: abs(runs.mean()))


def statements(config) -> tuple[Statement, ...]:
    place = "at the worst task, n and number of heads"
    return (
        Statement(
            "risk",
            SOURCE,
            "A trained layer reaches the least risk that any layer has, known in closed form",
            f"the excess over the optimum's risk on the same prompts, as a share of it, {place}",
            at_most=0.02,
            label="excess over\nthe optimum",
            sample=lambda r: worst(r.excess.transpose("run", ...), np.mean),
        ),
        Statement(
            "matrix",
            SOURCE,
            "The trained layer's matrix is A* = Γ^{-1}, with label noise (Γ + σ²/n I)^{-1}",
            f"the cosine of the matrix with A* {place}",
            at_least=0.99,
            sample=lambda r: worst(r.cosine.transpose("run", ...), lambda runs: -runs.mean()),
        ),
        Statement(
            "heads",
            "derived here",
            "Trained with more heads, one layer ends at the same risk: they merge into one matrix",
            f"the relative change of the risk from {config.heads[0]} to more heads, where largest",
            margin=0.02,
            note="that they merge is a theorem; here that training is not led elsewhere",
            label="change with\nmore heads",
            sample=worst_head_change,
        ),
    )
