"""The errors, shares and correlations that the statements of `flow_factors` are judged by."""

import numpy as np

from experiments.flow.flow_factors.config import STEPS
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    best = dataset.sel(step=STEPS[0]).transpose("run", ...)
    ahead = best.r2.sel(form="product") - best.r2.sel(form="sum")  # [R, scale, quantity]
    vanishing = best.of_kind.sel(kind=["irrelevant", "learned"])
    flow, contribution = (best.correlation.sel(predictor=p) for p in ("flow", "contribution"))
    return {
        "equation_2": best.not_equation_2.values,
        "contribution": best.not_product.values,
        "either_or_contribution": vanishing.sel(measure="contribution").max("kind").values,
        "either_or_flow": vanishing.sel(measure="flow").min("kind").values,
        "flow_is_a_sum": ahead.sel(quantity="flow", scale="squares").values,
        "reduction_is_a_product": worst(
            ahead.sel(quantity="error reduction"), lambda runs: -runs.mean()
        ),
        "flow_predicts": flow.values,
        "contribution_predicts": contribution.values,
        "contribution_or_flow": (contribution - flow).values,
        "helps": best.helps.values,
        "unit_step": dataset.gain.sel(step="1").values,
    }
