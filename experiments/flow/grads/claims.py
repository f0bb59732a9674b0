"""The ratios of errors and the correlations that the statements of `grads` are judged by."""

import numpy as np

from experiments.flow.grads.config import LAST, PRODUCTS, PROMPTS, SWEEP, VARIANTS
from lsa_lab import results
from lsa_lab.claims import verdict_of
from lsa_lab.statistics import CONFIDENCE, mean_interval, spearman

OUTCOMES = {"holds": "wins", "undecided": "undecided", "fails": "loses"}


def strongest(validation, without=()):  # [..., other, rule] -> names [...]
    """The rival that is best on other queries: a rule that is not GradS by another name."""
    return validation.drop_sel(rule=[*VARIANTS, *without]).mean("other").idxmin("rule")


def in_the_sweep(dataset, without=(), rule="GradS"):  # -> names [cells], log ratios [R, cells]
    """A rule against the strongest rival in every cell of the sweep, by the log of errors."""
    names = strongest(dataset.sweep_validation, without).stack(cell=SWEEP)
    errors = dataset.sweep.stack(cell=SWEEP)
    ratio = np.log(errors.sel(rule=rule) / errors.sel(rule=names))
    return names, ratio.transpose("run", "cell")


def intervals(ratios):  # log ratios [R, cells] -> [(low, high)] of their means
    """95 % for all cells at once (Bonferroni)."""
    confidence = 1 - (1 - CONFIDENCE) / ratios.sizes["cell"]
    return [
        mean_interval(of_cell, confidence) for of_cell in ratios.transpose("cell", "run").values
    ]


def each_outcome(ratios) -> list[str]:  # log ratios [R, cells] -> "wins", ... in every cell
    return [OUTCOMES[verdict_of(interval, at_most=0)] for interval in intervals(ratios)]


def outcomes(ratios) -> dict[str, int]:  # log ratios [R, cells] -> cells that GradS wins, ...
    each = each_outcome(ratios)
    return {outcome: each.count(outcome) for outcome in OUTCOMES.values()}


def against(dataset, rule):  # -> log ratios [R, cells]
    errors = dataset.sweep.stack(cell=SWEEP).transpose("rule", "run", "cell")
    return np.log(errors.sel(rule="GradS") / errors.sel(rule=rule))


def ranked_better(dataset):  # -> [cells]
    """How much better GradS ranks what single demonstrations are worth than one factor does, by
    rank correlations on other queries."""
    ranks = dataset.ranks.mean("other").stack(cell=SWEEP)
    return ranks.sel(score="GradS") - ranks.sel(score=["relevance", "residual"]).max("score")


def against_rivals(dataset, task, shots):  # -> name, ratios [R]
    """The error of GradS over that of the strongest rival on one kind of tasks."""
    place = {"setting": task, "shots": shots}
    name = strongest(dataset.validation.sel(place)).item()
    errors = dataset.error.sel(place)
    return name, (errors.sel(rule="GradS") / errors.sel(rule=name)).values


def last_layer(dataset, prompt):  # -> layer, ratios [R]
    """The error by the last layer's flow over that by the earlier layer's which is best on other
    queries."""
    place = {"setting": "prior", "prompt": prompt, "shots": results.config_of(dataset).judged}
    others = dataset.layer_validation.sel(**place).mean("other")
    layer = int(others[:-1].argmin("layer"))
    errors = dataset.layer_error.sel(**place)
    return layer + 1, (errors.isel(layer=-1) / errors.isel(layer=layer)).values


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    judged = results.config_of(dataset).judged
    duplicates, table = (
        dataset.error.sel(setting=task, shots=judged) for task in ("duplicates", "table")
    )
    nothing = dataset.end.sel(setting="table", prompting="zero-shot")
    of_table = table.sel(rule="GradS")
    again, once = (duplicates.sel(rule=f"contribution{s}") for s in (", recomputed", ""))
    usual = in_the_sweep(dataset, PRODUCTS)[1]
    predictors = {
        "ineffective": dataset.ineffective.stack(cell=SWEEP).values,
        "ranks": ranked_better(dataset).values,
    }
    means = {
        "strongest": in_the_sweep(dataset)[1],
        "usual": usual,
        "strongest_last_layer": in_the_sweep(dataset, rule=LAST)[1],
        "usual_last_layer": in_the_sweep(dataset, PRODUCTS, LAST)[1],
        "random": against(dataset, "random"),
        "times_input": -against(dataset, "flow × input"),
    }
    return {
        **{name: np.exp(ratios.mean("cell").values) for name, ratios in means.items()},
        **{
            name: np.array([spearman(-of_run, predictor) for of_run in usual.values])
            for name, predictor in predictors.items()
        },
        "duplicates": against_rivals(dataset, "duplicates", judged)[1],
        "table": against_rivals(dataset, "table", judged)[1],
        "table_random": (of_table / table.sel(rule="random")).values,
        "table_none": (of_table / nothing).values,
        "last_layer": last_layer(dataset, PROMPTS[0])[1],
        "last_layer_pool": last_layer(dataset, PROMPTS[1])[1],
        "recomputed_flow": np.divide(*dataset.joined.transpose("flow", "run").values[::-1]),
        "recomputed_contribution": (again / once).values,
    }
