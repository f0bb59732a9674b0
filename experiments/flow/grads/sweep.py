"""GradS against its rivals: in every cell of the sweep, and on one kind of tasks."""

import numpy as np

from experiments.flow.grads.config import RECOMPUTED, RELEVANCE, SWEEP, VARIANTS
from lsa_lab.judging.claims import verdict_of
from lsa_lab.judging.statistics import CONFIDENCE, mean_interval
from lsa_lab.store import results


def strongest(validation):  # [..., other, rule] -> names [...]
    """The rival that is best on other queries."""
    return validation.drop_sel(rule=list(VARIANTS)).mean("other").idxmin("rule")


def log_ratios(dataset, rival, rule="GradS"):  # -> [R, cells]
    """Logarithms of the error by a rule over that by a rival, in every cell of the sweep."""
    errors = dataset.sweep.stack(cell=SWEEP)
    if rival == "strongest":
        rival = strongest(dataset.sweep_validation).stack(cell=SWEEP)
    return np.log(errors.sel(rule=rule) / errors.sel(rule=rival)).transpose("run", "cell")


def noise_ratios(dataset, rule, noise):  # -> [R]
    """The error by a rule over that by relevance, geometric mean over the tasks without noise in
    the labels, or over those with the most."""
    ratios = log_ratios(dataset, RELEVANCE, rule)
    level = {"without": ratios.noise.min(), "with": ratios.noise.max()}[noise]
    return np.exp(ratios[:, (ratios.noise == level).values].mean("cell").values)


def intervals(ratios):  # log ratios [R, cells] -> [(low, high)] of their means
    """Their confidence is that of all cells at once (Bonferroni)."""
    confidence = 1 - (1 - CONFIDENCE) / ratios.sizes["cell"]
    return [mean_interval(each, confidence) for each in ratios.transpose("cell", "run").values]


def verdicts(ratios) -> list[str]:  # log ratios [R, cells] -> [cells]
    """In each cell: GradS wins if "holds", loses if "fails"."""
    return [verdict_of(interval, at_most=0) for interval in intervals(ratios)]


def task_ratios(dataset, task, rival):  # -> [R]
    """The error of GradS over that of a rival on one kind of tasks."""
    place = {"setting": task, "shots": results.config_of(dataset).judged}
    if rival == "strongest":
        rival = strongest(dataset.validation.sel(place)).item()
    errors = dataset.error.sel(place)
    return (errors.sel(rule="GradS") / errors.sel(rule=rival)).values


def last_layer_ratios(dataset):  # -> [R]
    """The error by the last layer's flow over that by the earlier layer's which is best on other
    queries."""
    place = {"setting": "prior", "shots": results.config_of(dataset).judged}
    others = dataset.layer_validation.sel(place).mean("other")
    errors = dataset.layer_error.sel(place)
    return (errors.isel(layer=-1) / errors.isel(layer=int(others[:-1].argmin("layer")))).values


def recomputing_ratios(dataset):  # -> [R]
    """The error with duplicates by contributions that are computed after each pick over that by
    the same, computed once."""
    errors = dataset.error.sel(setting="duplicates", shots=results.config_of(dataset).judged)
    return (errors.sel(rule=RECOMPUTED) / errors.sel(rule="contribution")).values
