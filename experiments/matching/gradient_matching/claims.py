"""What the statements of `gradient_matching` are judged by."""

import numpy as np

from experiments.matching.gradient_matching.rules import (
    RIVALS,
)
from lsa_lab import results
from lsa_lab.claims import about_the_median


def relative(dataset):  # [run, n, rule]
    """Errors over that of the median random subset."""
    return dataset.error / dataset.error.sel(rule="random")


def worst(ratio, sign=1.0):  # [run, n, ...] -> [R], the largest median of all places
    flat = ratio.transpose("run", ...).values.reshape(ratio.sizes["run"], -1)
    return flat[:, np.argmax(sign * np.median(flat, axis=0))]


def claims(dataset):
    settings = results.config_of(dataset)
    ratio, size = relative(dataset), settings.ablation_size
    matched = dataset.error.sel(rule="matching")
    others = [rule for rule in dataset.rule.values if rule in RIVALS]
    log = np.log(dataset.error.sel(rule=others)).mean("n").median("run")
    best = str(log.rule.values[int(np.argmin(log.values))])
    by_length = dataset.by_length / matched.sel(n=size)
    of_small = dataset.small / dataset.small.sel(how="exact")
    of_swaps = (dataset.gap_by_swaps / dataset.gap_by_swaps.isel(swaps=0)).isel(swaps=-1)
    first = (dataset.by_used.isel(used=0) / dataset.by_used.isel(used=-1)).values
    a3, here = "A3 (CLG)", "derived here; A3 (CLG)"
    over = "median over runs of the error over that of a random subset, at the"
    rows = (
        ("random", a3, "Matched demonstrations teach better than random ones at every size",
         f"{over} worst size", worst(ratio.sel(rule="matching")), "at_most", "clear"),
        ("mismatched", f"{a3}, figure 4", "Mismatched demonstrations teach worse than random ones",
         f"{over} size where it is least (random subsets redrawn after a first run, in which it "
         "failed)", worst(ratio.sel(rule="mismatching"), -1.0),
         "at_least", "worse"),
        ("rivals", a3, f"No rival teaches better; the best of them on average is {best!r}",
         "median over runs of the error over that of this rival, at the worst size",
         worst(matched / dataset.error.sel(rule=best)), "at_most", "best"),
        ("pool", here, f"{size} matched demonstrations teach nearly as the whole pool does",
         f"median over runs of the error over that of all {settings.m}",
         (matched.sel(n=size) / dataset.pool_error).values, "at_most", "like_the_pool"),
        ("prefix", here, "A prefix of any length is as good a learner as the linear proxy",
         f"median over runs of the error over that of the proxy's choice, n = {size}, at the worst "
         "length", worst(by_length), "at_most", "same"),
        ("exact", here, "Greed with swaps comes near to the best subset of a small pool",
         "median over runs of the objective over the least possible, at the worst pool",
         worst(of_small.sel(how="swaps")), "at_most", "near_exact"),
        ("swaps", a3, "Swaps improve what greed has chosen",
         f"median over runs of the objective over that of greed alone, n = {size}",
         of_swaps.values, "at_most", "swaps"),
        ("checkpoints", a3, "Gradients along the whole training choose better than the first",
         f"median over runs of the error with one checkpoint over that with all, n = {size}",
         first, "at_least", "checkpoints"),
    )  # fmt: skip
    return [
        about_the_median(
            f"gradient_matching.{name}",
            source,
            statement,
            f"{criterion} {'<=' if side == 'at_most' else '>='} {getattr(settings, bound)}",
            samples,
            **{side: getattr(settings, bound)},
        )
        for name, source, statement, criterion, samples, side, bound in rows
    ]
