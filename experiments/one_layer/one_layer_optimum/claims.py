"""What the statements of `one_layer_optimum` are judged by."""

import numpy as np

from lsa_lab import results
from lsa_lab.claims import about_the_mean


def worst(measured, badness):  # -> [R]
    """The runs at the task, length and number of heads where they are worst."""
    samples = measured.transpose(..., "run").values.reshape(-1, measured.sizes["run"])
    return max(samples, key=badness)


def claims(dataset):
    settings = results.config_of(dataset)
    first = dataset.excess.isel(heads=0, drop=True)
    change = (dataset.excess - first) / (1 + first)
    few, bound = settings.heads[0], settings.head_ratio
    source = "Zhang et al. 2306.09927; with label noise derived here"
    return [
        about_the_mean(
            "one_layer_optimum.risk",
            source,
            "A trained layer reaches the least risk that any layer has, known in closed form",
            f"mean excess / optimum, paired, at the worst task, n and heads <= {settings.excess}",
            worst(dataset.excess, np.mean),
            at_most=settings.excess,
        ),
        about_the_mean(
            "one_layer_optimum.matrix",
            source,
            "The trained layer's matrix is A* = Γ^{-1}, with label noise (Γ + σ²/n I)^{-1}",
            f"mean cosine with A* at the worst task, n and heads >= {settings.cosine}",
            worst(dataset.cosine, lambda runs: -runs.mean()),
            at_least=settings.cosine,
        ),
        about_the_mean(
            "one_layer_optimum.heads",
            "derived here",
            "In one layer more heads change nothing: they merge into one matrix",
            f"mean relative change of the risk from {few} to more heads, where largest, ± {bound}",
            worst(change, lambda runs: abs(runs.mean())),
            at_least=-bound,
            at_most=bound,
        ),
    ]
