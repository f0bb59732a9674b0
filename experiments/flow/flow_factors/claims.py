"""What the statements of `flow_factors` are judged by."""

import numpy as np

from experiments.flow.flow_factors.config import CLAIMS, STEPS
from experiments.flow.flow_factors.one_shot import PREDICTORS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
    best = dataset.sel(step=STEPS[0])
    ahead = (best.r2.sel(form="product") - best.r2.sel(form="sum")).transpose(..., "run")
    vanishing = best.of_kind.sel(kind=["irrelevant", "learned"])
    correlation = {name: best.correlation.sel(predictor=name).values for name in PREDICTORS}
    samples = {
        "equation_2": best.not_equation_2.values,
        "contribution": best.not_product.values,
        "either_or_contribution": vanishing.sel(measure="contribution").max("kind").values,
        "either_or_flow": vanishing.sel(measure="flow").min("kind").values,
        "flow_is_a_sum": ahead.sel(quantity="flow", scale="squares").values,
        "reduction_is_a_product": min(ahead.sel(quantity="error reduction").values, key=np.mean),
        "flow_predicts": correlation["flow"],
        "contribution_predicts": correlation["contribution"],
        "contribution_or_flow": correlation["contribution"] - correlation["flow"],
        "helps": best.helps.values,
        "unit_step": dataset.gain.sel(step="1").values,
    }
    made = []
    for name, (source, statement, averaged, bound, criterion) in CLAIMS.items():
        value = getattr(settings, criterion) if isinstance(criterion, str) else criterion
        sign = {"at_most": "<=", "at_least": ">="}[bound]
        said = (source, statement, f"mean {averaged} {sign} {value}", samples[name])
        made.append(about_the_mean(f"flow_factors.{name}", *said, **{bound: value}))
    return made
