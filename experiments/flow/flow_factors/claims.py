"""The errors, shares and correlations that the statements of `flow_factors` are judged by."""

import numpy as np

from experiments.flow.flow_factors.config import OVER, STEPS
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    best = dataset.sel(step=STEPS[0]).transpose("run", ...)
    ahead = best.r2.sel(form="product") - best.r2.sel(form="sum")  # [R, scale, quantity]
    flows = best.of_kind.sel(measure="flow", kind=["irrelevant", "learned"])
    single, classes = (best.correlation.sel(over=over) for over in OVER)
    flow, contribution = (single.sel(predictor=p) for p in ("flow", "contribution"))
    factors = classes.sel(predictor=["relevance", "novelty"])
    return {
        "either_or_flow": flows.min("kind").values,
        "either_or_less": flows.max("kind").values,
        "flow_is_a_sum": ahead.sel(quantity="flow", scale="squares").values,
        "reduction_is_a_product": worst(
            ahead.sel(quantity="error reduction"), lambda runs: -runs.mean()
        ),
        "figure_2": factors.min("predictor").values,
        "flow_predicts": flow.values,
        "flow_predicts_on_average": classes.sel(predictor="flow").values,
        "contribution_predicts": contribution.values,
        "contribution_or_flow": (contribution - flow).values,
        "helps": best.helps.values,
    }
