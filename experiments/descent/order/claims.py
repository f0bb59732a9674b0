"""What the statements of `order` are judged by."""

import numpy as np

from experiments.descent.order.config import MASKS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def worst(measured, badness):  # -> [R]
    """The runs at the kind and depth where they are worst."""
    samples = measured.transpose(..., "run").values.reshape(-1, measured.sizes["run"])
    return max(samples, key=badness)


def claims(dataset):
    settings = results.config_of(dataset)
    free, causal = (dataset.effect.sel(mask=mask) for mask in MASKS)
    random = ["linear", "softmax"]
    most = "mean over runs of the largest change, relative, at the "
    none, some = f"<= {settings.exact:g}", f">= {settings.clear:g}"
    return [
        about_the_mean(
            "order.free",
            "derived here; A3's open question on order",
            "Where all tokens read all demonstrations, their order has no effect at any depth",
            f"{most}worst depth and kernel {none}",
            worst(free, np.mean),
            at_most=settings.exact,
        ),
        about_the_mean(
            "order.one_causal_layer",
            "derived here",
            "One causal layer does not see the order: its query reads all demonstrations",
            f"{most}worst kernel {none}",
            worst(causal.sel(depth=1), np.mean),
            at_most=settings.exact,
        ),
        about_the_mean(
            "order.two_causal_layers",
            "derived here",
            "Two causal layers see the order, linear or softmax, random or constructed",
            f"{most}kernel with the least {some}",
            worst(causal.sel(depth=2), lambda runs: -runs.mean()),
            at_least=settings.clear,
        ),
        about_the_mean(
            "order.batches_of_one",
            "A2 (2406.03768), Remark 1",
            "The order matters as in descent with batches of one, in the paper's own masked model",
            f"{most}depth and kernel with the most {some}",
            worst(free.sel(kind=random), np.mean),
            at_least=settings.clear,
        ),
    ]
