"""What the statements of `amplification_limits` are judged by."""

import numpy as np

from experiments.flow.amplification_limits.config import CLAIMS
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_median, verdict_of


def claims(dataset):
    settings = results.config_of(dataset)
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    change = change.transpose("direction", "budget", "restart").values
    shown = dataset.search.sel(direction="least", budget=settings.shown).isel(search_layer=-1)
    small, large = (int(pick(settings.budgets)) for pick in (np.argmin, np.argmax))
    alone = dataset.growth.sel(mode="alone").transpose("feedback", "gain", "run")
    right = dataset.agreement.transpose("map", "run").values
    bounds = {
        "positive": {"at_least": 0.0},
        "generic": {"at_least": settings.generic},
        "rare": {"at_most": 1 - settings.generic},
        "small": {"at_most": settings.small},
        "exact": {"at_least": settings.exact},
        "predicts": {"at_least": settings.predicts},
        "reversed": {"at_most": 1.0},
        "limit": {"at_most": settings.limit},
        "rounding": {"at_most": settings.rounding},
    }
    samples = {
        "theorem_1": change[0, large],
        "order": shown.values,
        "robust": dataset.reverses.values,
        "small_weights": np.abs(change[:, small]).max(0),
        "push": min(alone.sel(feedback=1).values, key=np.median),
        "pull": max(alone.sel(feedback=-1).values, key=np.median),
        "kappa_frozen": right[0],
        "kappa_moving": right[1],
    }
    network, closed = (dataset.example.sel(side=side) for side in dataset.side.values)
    apart = np.abs(network / closed - 1).max("layer").values
    for i, name in enumerate(("width_1", "descent", "coupling")):
        samples |= {name: network.values[i, -1], f"{name}_law": apart[i]}
    made = []
    for name, values in samples.items():
        source, statement, measured, which = CLAIMS[name]
        words = {"at_least": ">=", "at_most": "<="}
        kept = " and ".join(f"{words[k]} {bound:g}" for k, bound in bounds[which].items())
        row = (f"amplification_limits.{name}", source, statement, f"{measured} {kept}")
        if np.ndim(values):
            made.append(about_the_median(*row, values, **bounds[which]))
        else:  # one number, the same in every run
            value = float(values)
            verdict = verdict_of((value, value), **bounds[which])
            made.append(Claim(*row, value, (value, value), verdict))
    return made
