"""What the statements of `coverage` are judged by."""

import numpy as np

from experiments.matching.coverage.compute import shares_of
from experiments.matching.coverage.config import GROUPS, KINDS
from lsa_lab import results
from lsa_lab.claims import about_the_median


def relative(dataset):  # errors over those of random subsets
    return dataset.error / dataset.error.sel(rule="random")


def overall(dataset, settings):  # on the pool's own law
    shares = np.array(shares_of(settings))
    return (dataset.error * shares).sum("group")


def worst(values, sign=1.0):  # [run, n] -> [R], at the size where the median over runs is largest
    flat = values.transpose("run", "n").values
    return flat[:, np.argmax(sign * np.median(flat, axis=0))]


def claims(dataset):
    settings = results.config_of(dataset)
    over = "median over runs of the"
    made = []
    for tag, kind in zip(("one_task", "own_tasks", "labels"), KINDS, strict=True):
        there = dataset.sel(kind=kind)
        kl, ratio = there.divergence, relative(there).sel(rule="matching")
        whole = overall(there, settings)
        group = {name: ratio.sel(group=name) for name in GROUPS}
        rows = (
            ("shares", "A3 (CLG), table 6",
             "Matching keeps the clusters' shares better than chance does",
             f"{over} KL over the mean of random subsets (statistic changed after a first run: it "
             "was over that of the same run, at times 0/0), at the worst size",
             worst(kl.sel(rule="matching") / kl.sel(rule="random").mean("run")),
             "at_most", "shares"),
            ("minority", "A3's open question on bias",
             "Matching teaches the minority no worse than random subsets do",
             f"{over} error of the minority over that of random subsets, at the worst size",
             worst(group["minority"]), "at_most", "minority_error"),
            ("favours", "A3's open question on bias",
             "What matching gains goes to the majority more than to the minority",
             f"{over} ratio of the minority's relative error to the majority's, at the size where "
             "it is least", worst(group["minority"] / group["majority"], -1.0),
             "at_least", "favours"),
            ("strata", "asked here of A3 (CLG)",
             "Stratified random subsets teach as well as matched ones",
             f"{over} error on the pool's law over that of matching, at the worst size",
             worst(whole.sel(rule="stratified") / whole.sel(rule="matching")),
             "at_most", "strata"),
        )  # fmt: skip
        made += [
            about_the_median(
                f"coverage.{tag}_{name}",
                source,
                f"{statement} ({kind})",
                f"{criterion} {'<=' if side == 'at_most' else '>='} {getattr(settings, bound)}",
                samples,
                **{side: getattr(settings, bound)},
            )
            for name, source, statement, criterion, samples, side, bound in rows
        ]
    return made
