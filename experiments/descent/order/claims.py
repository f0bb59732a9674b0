"""What a new order changes in two causal layers, at the kernel where that is least."""

import numpy as np

from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    two = dataset.sel(mask="causal", depth=2).transpose("run", ...)
    return {
        "two_causal_layers": worst(two.effect, lambda runs: -runs.mean()),
        "share": worst(two.share, lambda runs: -runs.mean()),
    }
