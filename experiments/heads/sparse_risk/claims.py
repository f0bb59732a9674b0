"""Risks over the bound, and paired differences where an order of two rules is least clear."""

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, SPARSE_BAYES
from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, SQUARES, axes_of
from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict:
    return {**of_means(dataset), **{id: least_clear(d) for id, d in in_order(dataset).items()}}


def over_bound(dataset, panel):
    """The risks of a panel over the least of rules linear in the labels that ignore directions."""
    return dataset[panel] / dataset[f"{panel}_bound"]


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = over_bound(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def places_of(*arrays) -> np.ndarray:  # [run, place]
    """Arrays with an axis "run", their other axes flattened, side by side."""
    rows = [array.transpose("run", ...).values for array in arrays]
    return np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1)


def least_clear(differences) -> tuple[float, float]:  # [run, place]
    """The mean and its standard error, at the place where their ratio is smallest."""
    means = differences.mean(0)
    errors = differences.std(0, ddof=1) / len(differences) ** 0.5
    place = np.argmin(means / errors)
    return float(means[place]), float(errors[place])


def in_order(dataset) -> dict:
    """{id: differences [run, place] that are to be positive}"""
    config = results.config_of(dataset)
    sparse = dataset.s.values[dataset.s.values < config.d]
    duel = paired(dataset, "long", PREPROCESSED, LASSO)
    last = duel.sel(signal="flat").isel(length=-1)
    dense = [paired(dataset, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED)]
    less = paired(dataset, "by_s", PREPROCESSED, RIDGE)

    def by_n(better, *others):
        return places_of(*(paired(dataset, "by_n", better, rule) for rule in others))

    return {
        "ridge": by_n(RIDGE, DESCENT, SQUARES),
        "preprocessed": by_n(PREPROCESSED, RIDGE),
        "lasso": by_n(LASSO, RIDGE),
        "bayes": by_n(SPARSE_BAYES, LASSO, PREPROCESSED),
        "noise": places_of(paired(dataset, "by_noise", PREPROCESSED, RIDGE)),
        "less_sparse": places_of(less.sel(s=sparse)),
        "dense": places_of(*(difference.sel(law="dense") for difference in dense)),
        "gaussian": places_of(-duel.sel(signal="gaussian")),
        "flat": places_of(last, paired(dataset, "wide", PREPROCESSED, LASSO).isel(wide_n=-1)),
    }


def of_means(dataset) -> dict:
    """{id: samples [run]}"""
    config = results.config_of(dataset)
    over = {panel: over_bound(dataset, panel) for panel in axes_of(config)}
    ridge = places_of(*(risks.sel(rule=RIDGE) for risks in over.values()))
    others = places_of(*(risks.sel(rule=[SQUARES, DESCENT]) for risks in over.values()))
    panels = ("by_n", "by_noise", "by_s", "by_law")
    gains = places_of(*(paired(dataset, panel, EQUIVARIANT, RIDGE) for panel in panels))
    last = dataset.wide.isel(wide_n=-1) * config.wide_lengths[-1] / config.loud
    return {
        "exact": worst(ridge, lambda runs: abs(runs.mean() - 1)),
        "bound": worst(others, lambda runs: -runs.mean()),
        "nonlinear": worst(gains, np.mean),
        "gain": over["by_law"].sel(law="Gaussian", rule=PREPROCESSED).values,
        "plateau": last.sel(rule=PREPROCESSED).values / config.s,
        "stays": last.sel(rule=DESCENT).values / config.wide_d,
    }
