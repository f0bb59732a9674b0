"""What the statements of `sparse_risk` are judged by."""

import numpy as np

from experiments.heads.sparse_risk.compute import DESCENT, LASSO, PREPROCESSED, RIDGE, SQUARES
from experiments.heads.sparse_risk.config import CLAIMS
from experiments.heads.sparse_risk.panels import (
    ratio,
)
from experiments.heads.sparse_risk.places import BAYES, axes_of
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, verdict_of

EQUIVARIANT, EXACT = BAYES


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = ratio(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def rows(*some):  # -> [place, run]
    return np.concatenate(
        [one.transpose(..., "run").values.reshape(-1, one.sizes["run"]) for one in some]
    )


def in_order(dataset) -> dict:  # {claim: differences [place, run] that are to be positive}
    settings = results.config_of(dataset)
    sparse = dataset.s.values[dataset.s.values < settings.d]
    duel = paired(dataset, "long", PREPROCESSED, LASSO)
    last = duel.sel(signal="flat").isel(length=-1)
    dense = [paired(dataset, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED)]
    less = paired(dataset, "by_s", PREPROCESSED, RIDGE)
    return {
        "ridge": rows(*(paired(dataset, "by_n", RIDGE, rule) for rule in (DESCENT, SQUARES))),
        "preprocessed": rows(paired(dataset, "by_n", PREPROCESSED, RIDGE)),
        "lasso": rows(paired(dataset, "by_n", LASSO, RIDGE)),
        "bayes": rows(*(paired(dataset, "by_n", EXACT, rule) for rule in (LASSO, PREPROCESSED))),
        "noise": rows(paired(dataset, "by_noise", PREPROCESSED, RIDGE)),
        "less_sparse": rows(less.sel(s=sparse)),
        "dense": rows(*(one.sel(law="dense") for one in dense)),
        "gaussian": rows(-duel.sel(signal="gaussian")),
        "flat": rows(last, paired(dataset, "wide", PREPROCESSED, LASSO).isel(wide_n=-1)),
    }


def of_means(dataset) -> dict:  # {claim: (samples [run], at_least, at_most)}
    settings, slack = results.config_of(dataset), results.config_of(dataset).tolerance
    over = {panel: ratio(dataset, panel) for panel in axes_of(settings)}
    ridge = rows(*(one.sel(rule=RIDGE) for one in over.values()))
    others = rows(*(one.sel(rule=[SQUARES, DESCENT]) for one in over.values()))
    gains = rows(*(paired(dataset, panel, EQUIVARIANT, RIDGE)
                   for panel in ("by_n", "by_noise", "by_s", "by_law")))  # fmt: skip
    last = dataset.wide.isel(wide_n=-1) * settings.wide_lengths[-1] / settings.loud
    here = over["by_law"].sel(law="Gaussian", rule=PREPROCESSED).values
    return {
        "exact": (ridge[np.argmax(abs(ridge.mean(1) - 1))], 1 - slack, 1 + slack),
        "bound": (others[np.argmin(others.mean(1))], 1 - slack, None),
        "nonlinear": (gains[np.argmax(gains.mean(1))], None, settings.nonlinear),
        "gain": (here, None, settings.gain),
        "plateau": (last.sel(rule=PREPROCESSED).values / settings.s, None, settings.plateau),
        "stays": (last.sel(rule=DESCENT).values / settings.wide_d, settings.stays, None),
    }


def claims(dataset):
    settings = results.config_of(dataset)
    ordered, means, made = in_order(dataset), of_means(dataset), []
    for name, (source, statement, criterion) in CLAIMS.items():
        fixed = f"sparse_risk.{name}", source, statement, criterion.format(**vars(settings))
        if name in means:
            samples, low, high = means[name]
            made.append(about_the_mean(*fixed, samples, at_least=low, at_most=high))
            continue
        middle = ordered[name].mean(1)
        error = ordered[name].std(1, ddof=1) / settings.runs**0.5
        least = np.argmin(middle / error)
        half = settings.errors * error[least]
        interval = middle[least] - half, middle[least] + half
        made.append(Claim(*fixed, middle[least], interval, verdict_of(interval, at_least=0)))
    return made
