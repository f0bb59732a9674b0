"""What `coverage` judges: shares and errors of matched subsets, over those of random and of
stratified ones, whose errors are the mean of the draws; the same of several classes."""

from functools import partial
from types import SimpleNamespace

import numpy as np

from experiments.matching.coverage.config import CLASSES, ORDER, PROXIES, shares
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import parts, results

A3 = "A3 (2506.04579)"
TABLE = f"{A3}, table 6, in our setting"
QUESTION = f"{A3}, limitations, open question"
KEPT = 0.5  # KL of matching over that expected of random subsets
TAUTOLOGY = 'by the theorem "An intercept keeps the shares", no test of the method'
BY_THEOREM = dict(source="derived here", caveat=TAUTOLOGY)
CHANGED = "pools and sizes were others, and the loss of classes the squared one"
PLAIN, INTERCEPT, LATER = PROXIES


def relative_divergence(dataset):  # [kind, run, n, rule]
    """The KL over its expectation for random subsets."""
    return dataset.divergence / dataset.expected


def pools(dataset, kind):
    return dataset.sel(kind=kind).transpose("run", "n", ...)


def divergence(dataset, kind, rule):  # [R]
    """The relative KL, of classes at the largest size, which is that of A3's table."""
    values = relative_divergence(pools(dataset, kind)).sel(rule=rule)
    if kind == CLASSES:
        values = values.sel(n=[max(values.n.values)])
    return worst_elsewhere(values, np.mean)


def strata_ratio(dataset, kind):  # [run, n]
    """The error of stratified subsets over that of matching, groups weighed by their shares."""
    weights = np.array(shares(results.config_of(dataset)))
    error = (pools(dataset, kind).error * weights).sum("group")
    return error.sel(rule="stratified") / error.sel(rule="matching")


def group_error(dataset, kind, group):  # [run, n]
    """The error of matching over that of random subsets."""
    error = pools(dataset, kind).error.sel(group=group)
    return error.sel(rule="matching") / error.sel(rule="random")


def preference(dataset, kind):  # [R]
    """The minority's relative error over the majority's."""
    ratio = group_error(dataset, kind, "minority") / group_error(dataset, kind, "majority")
    return -worst(-ratio)


def class_values(result, name, classes, rule):  # [R]
    return result.several[name].sel(classes=classes, rule=rule).values


def numbers(dataset):
    return SimpleNamespace(groups=parts.part(dataset), several=parts.part(dataset, "several"))


def statements(config) -> tuple[Statement, ...]:
    return (*group_statements(config), *class_statements(config.several))


def group_statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, 16 before"
    median = partial(Statement, statistic="median", revision=CHANGED, redrawn=fresh)

    def words(kind, proxy):
        source = TABLE if kind == CLASSES else f"modelled on {A3}, table 6"
        by_theorem = (kind, proxy) == (CLASSES, INTERCEPT)
        origin = BY_THEOREM if by_theorem else dict(source=source, caveat="")
        return origin | dict(fresh="" if proxy == LATER else fresh)

    return (
        Statement(
            "shares",
            "{source}",
            "Matching keeps the clusters' shares twice as well as random subsets ({kind}, {proxy})",
            "the KL over its expectation for random subsets, of classes at the largest size, else "
            "at the size that is worst for the other runs",
            at_most=KEPT,
            note="{caveat}",
            revision=f"it was a median; {CHANGED}; rows with an intercept are added",
            redrawn="{fresh}",
            sample=lambda d, kind, proxy: divergence(d.groups, kind, proxy),
            cells=grid(
                "classes_shares classes_shares_intercept classes_shares_later "
                "one_task_shares one_task_shares_intercept - "
                "own_tasks_shares own_tasks_shares_intercept -",
                kind=ORDER,
                proxy=PROXIES,
            ),
            words=words,
            message="Matching keeps the clusters' shares twice as well as random subsets, by "
            "proxies with and without an intercept, whatever the labels",
        ),
        median(
            "minority",
            QUESTION,
            "Matching teaches the minority no worse than random subsets do ({kind})",
            "the error of the minority over that of random subsets, at the worst size",
            at_most=1.1,
            revision=f"the bound 1.1, no worse, was 1; {CHANGED}",
            sample=lambda d, kind: worst(group_error(d.groups, kind, "minority")),
            cells=grid("classes_minority one_task_minority own_tasks_minority", kind=ORDER),
        ),
        median(
            "favours",
            QUESTION,
            "What matching gains goes to the majority more than to the minority ({kind})",
            "the minority's relative error over the majority's, at the size where it is least",
            at_least=1.0,
            sample=lambda d, kind: preference(d.groups, kind),
            cells=grid("classes_favours one_task_favours own_tasks_favours", kind=ORDER),
        ),
        median(
            "strata",
            f"modelled on {A3}, section 4.10",
            "Stratified random subsets teach as well as matched ones ({kind})",
            "the error, groups weighed as in pools, over that of matching, at the worst size",
            at_most=1.1,
            sample=lambda d, kind: worst(strata_ratio(d.groups, kind)),
            cells=grid("classes_strata one_task_strata own_tasks_strata", kind=ORDER),
        ),
    )


def class_statements(config) -> tuple[Statement, ...]:
    """Those of several classes, whose ids end in their number."""
    before = "144, 36, 48 and 12" if config.runs > 48 else "36 and 12"
    row = partial(Statement, redrawn=f"{config.runs} fresh runs, {before} before")
    reading = "the KL was to the pool's shares; in the table it is to the test set's"
    where = f"{{classes}} classes, {config.n} shots"

    def cells(end=""):
        pairs = [(f"plain_{k}{end}", f"intercept_{k}{end}") for k in config.classes]
        return grid(" ".join(sum(pairs, ())), classes=config.classes, rule=(PLAIN, INTERCEPT))

    return (
        row(
            "matched",
            "{source}",
            f"Matching keeps the shares of the classes as well as in the table ({where}, {{rule}})",
            "the KL of the subset's shares from a test set's",
            at_most=0.008,
            note="{caveat}",
            revision=reading,
            sample=lambda d, classes, rule: class_values(d, "divergence", classes, rule),
            cells=cells(),
            words=lambda classes, rule: (
                BY_THEOREM if rule == INTERCEPT else dict(source=TABLE, caveat="")
            ),
            message="Matching keeps the shares of the classes as well as in the table, by a proxy "
            "with an intercept and without one",
        ),
        row(
            "random",
            TABLE,
            f"Random subsets miss the shares of the classes as far as in the table ({where})",
            "the KL of their shares from a test set's, mean of draws",
            at_least=0.012,
            at_most=0.020,
            note="chance alone gives about (K - 1) / 2n, and as much for n of the test set",
            revision=reading,
            sample=lambda d, classes: class_values(d, "divergence", classes, "random"),
            cells={f"random_{k}": dict(classes=k) for k in config.classes},
            message="Random subsets miss the shares of the classes as far as in the table, "
            "whatever the number of classes",
        ),
        row(
            "error",
            f"{A3}, abstract, in our setting",
            f"Matched demonstrations teach the classes better than random ones ({where}, {{rule}})",
            "the share of wrong answers less the mean of random subsets, same queries",
            at_most=0.0,
            sample=lambda d, classes, rule: (
                class_values(d, "wrong", classes, rule)
                - class_values(d, "wrong", classes, "random")
            ),
            cells=cells("_error"),
            message="Matched demonstrations teach the classes better than random ones, by a proxy "
            "with an intercept and without one",
        ),
    )
