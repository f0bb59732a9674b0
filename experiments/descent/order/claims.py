"""The largest changes that a new order makes, at the places that the statements of `order` name."""

import numpy as np

from experiments.descent.order.config import MASKS
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    effect = dataset.effect.transpose("run", ...)
    free, causal = (effect.sel(mask=mask) for mask in MASKS)
    return {
        "free": worst(free, np.mean),
        "one_causal_layer": worst(causal.sel(depth=1), np.mean),
        "two_causal_layers": worst(causal.sel(depth=2), lambda runs: -runs.mean()),
        "batches_of_one": worst(free.sel(kind=["linear", "softmax"]), np.mean),
    }
