"""Residuals at the layer and scale that each statement of `common_map` names."""

import numpy as np

from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    def most(residual, model):
        return worst(residual.sel(model=model), np.mean)

    def least(residual, model):
        return worst(residual.sel(model=model), lambda runs: -runs.mean())

    tokens = dataset.residual.transpose("run", ...)
    queries = dataset.query_residual.transpose("run", ...)
    return {
        "linear": most(tokens, "linear"),
        "query_as_key": most(tokens, "linear, query a key"),
        "query_as_key_queries": least(queries, "linear, query a key"),
        "causal": least(tokens, "linear, causal"),
        "causal_queries": most(queries, "linear, causal"),
        "norm": least(tokens, "linear, norm"),
        "mlp": least(tokens, "linear, MLP"),
        "softmax": least(tokens, "softmax"),
    }
