"""Residuals at the layer and scale where each statement of `common_map` is hardest to hold."""

import numpy as np

from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    def least(residual, model):
        runs = residual.sel(model=model).transpose("run", ...)
        return worst(runs, lambda runs: -runs.mean())

    return {
        "query_as_key_queries": least(dataset.query_residual, "linear, query a key"),
        "causal": least(dataset.residual, "linear, causal"),
        "norm": least(dataset.residual, "linear, norm"),
        "mlp": least(dataset.residual, "linear, MLP"),
        "softmax": least(dataset.residual, "softmax"),
    }
