"""GradS against its rivals: in every cell of the sweep, and on one kind of tasks."""

import numpy as np

from experiments.flow.grads.config import PRODUCTS, SWEEP, VARIANTS
from lsa_lab.judging.claims import verdict_of
from lsa_lab.judging.statistics import CONFIDENCE, mean_interval, spearman
from lsa_lab.store import results

OUTCOMES = {"holds": "wins", "undecided": "undecided", "fails": "loses"}


def strongest(validation, without=()):  # [..., other, rule] -> names [...]
    """The rival that is best on other queries: a rule that is not GradS by another name."""
    return validation.drop_sel(rule=[*VARIANTS, *without]).mean("other").idxmin("rule")


def strongest_ratios(dataset, without=(), rule="GradS"):  # -> names [cells], log ratios [R, cells]
    """A rule against the strongest rival in every cell of the sweep, by the log of errors."""
    names = strongest(dataset.sweep_validation, without).stack(cell=SWEEP)
    errors = dataset.sweep.stack(cell=SWEEP)
    ratio = np.log(errors.sel(rule=rule) / errors.sel(rule=names))
    return names, ratio.transpose("run", "cell")


def usual_ratios(dataset, rule="GradS"):  # -> names [cells], log ratios [R, cells]
    """The same against the strongest rival that takes no product of relevance and novelty."""
    return strongest_ratios(dataset, PRODUCTS, rule)


def rule_ratios(dataset, rule):  # -> log ratios [R, cells]
    errors = dataset.sweep.stack(cell=SWEEP).transpose("rule", "run", "cell")
    return np.log(errors.sel(rule="GradS") / errors.sel(rule=rule))


def intervals(ratios):  # log ratios [R, cells] -> [(low, high)] of their means
    """Their confidence is that of all cells at once (Bonferroni)."""
    confidence = 1 - (1 - CONFIDENCE) / ratios.sizes["cell"]
    return [
        mean_interval(of_cell, confidence) for of_cell in ratios.transpose("cell", "run").values
    ]


def each_outcome(ratios) -> list[str]:  # log ratios [R, cells] -> "wins", ... in every cell
    return [OUTCOMES[verdict_of(interval, at_most=0)] for interval in intervals(ratios)]


def outcomes(ratios) -> dict[str, int]:  # log ratios [R, cells] -> cells that GradS wins, ...
    each = each_outcome(ratios)
    return {outcome: each.count(outcome) for outcome in OUTCOMES.values()}


def ranking_advantage(dataset):  # -> [cells]
    """How much better GradS ranks what single demonstrations are worth than one factor does, by
    rank correlations on other queries."""
    ranks = dataset.ranks.mean("other").stack(cell=SWEEP)
    return ranks.sel(score="GradS") - ranks.sel(score=["relevance", "residual"]).max("score")


def mean_ratio(dataset, rule, rival):  # -> [R]
    """The error by a rule over a rival's, geometric mean over the cells of the"""
    if rival == "random":
        ratios = rule_ratios(dataset, rival)
    else:
        against = usual_ratios if rival == "usual" else strongest_ratios
        _, ratios = against(dataset, rule=rule)
    return np.exp(ratios.mean("cell").values)


def gain_correlation(dataset, predictor):  # -> [R]
    """The rank correlation over the cells of the gain over the best usual rule with what was to
    predict it."""
    predictors = {
        "ineffective": dataset.ineffective.stack(cell=SWEEP).values,
        "ranks": ranking_advantage(dataset).values,
    }
    _, ratios = usual_ratios(dataset)
    return np.array([spearman(-of_run, predictors[predictor]) for of_run in ratios.values])


def task_ratios(dataset, task, rival):  # -> [R]
    """The error of GradS over that of a rival, or of no demonstrations, on one kind of tasks."""
    place = {"setting": task, "shots": results.config_of(dataset).judged}
    errors = dataset.error.sel(place)
    if rival == "none":
        other = dataset.end.sel(setting=task, prompting="zero-shot")
    else:
        best = strongest(dataset.validation.sel(place)).item()
        other = errors.sel(rule=best if rival == "strongest" else rival)
    return (errors.sel(rule="GradS") / other).values


def last_layer(dataset, prompt):  # -> layer, ratios [R]
    """The error by the last layer's flow over that by the earlier layer's which is best on other
    queries."""
    place = {"setting": "prior", "prompt": prompt, "shots": results.config_of(dataset).judged}
    others = dataset.layer_validation.sel(**place).mean("other")
    layer = int(others[:-1].argmin("layer"))
    errors = dataset.layer_error.sel(**place)
    return layer + 1, (errors.isel(layer=-1) / errors.isel(layer=layer)).values


def recomputing_ratios(dataset, score):  # -> [R]
    """The error with duplicates by a score that is computed after each pick over that by the same,
    computed once."""
    if score == "last layer":
        return np.divide(*dataset.joined.transpose("flow", "run").values[::-1])
    errors = dataset.error.sel(setting="duplicates", shots=results.config_of(dataset).judged)
    return (errors.sel(rule=f"{score}, recomputed") / errors.sel(rule=score)).values
