"""Risks beside theory, beside predicting zero and on a real table, for the statements judged."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R], on the table [G]}
    config = results.config_of(dataset)
    ratios = (dataset.risk / dataset.theory).transpose("run", "case")
    table = dataset.table_error.sel(table_length=config.n).astype(float)
    layer, descent, _, mean = table.transpose("learner", "group").values
    return {
        "theory": worst(ratios, lambda runs: abs(runs.mean() - 1)),
        "floor": (dataset.risk.isel(case=-1) - dataset.zero).values,
        "table": layer - mean,
        "table_descent": layer - descent,
    }
