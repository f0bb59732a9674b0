"""The runs at the task, length and number of heads where `one_layer_optimum` is worst."""

import numpy as np

from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    excess = dataset.excess.transpose("run", ...)
    first = excess.isel(heads=0, drop=True)
    return {
        "risk": worst(excess, np.mean),
        "matrix": worst(dataset.cosine.transpose("run", ...), lambda runs: -runs.mean()),
        "heads": worst((excess - first) / (1 + first), lambda runs: abs(runs.mean())),
    }
