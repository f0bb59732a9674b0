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
KEPT = 0.5  # KL of matching over that expected of random subsets
TAUTOLOGY = 'a theorem, "An intercept keeps the shares": no test of the method'
CONTROL = "derived here, a control"
ADDED = "added after a look at these runs"
WORST = "at the size that is worst for the other runs"
TAGS = {"plain": PROXIES[0], "intercept": PROXIES[1]}  # of several classes: rules, as ids have them


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

    def change(kind):
        loss = "; the logistic loss; it was the squared one" if kind == CLASSES else ""
        return dict(changed=f"pools and sizes were others{loss}")

    def proxy_words(kind, proxy):
        classes, place = kind == CLASSES, PROXIES.index(proxy)
        more = ("", ", with intercept", ", with intercept, its start left out")[place]
        return dict(
            source=(CONTROL if place == 1 else f"{A3}, table 6, in our setting")
            if classes
            else f"modelled on {A3}, table 6",
            place=f"n = {max(config.sizes)}" if classes else WORST,
            more=more,
            caveat=TAUTOLOGY if classes and place == 1 else "",
            revision=f"a mean; it was a median; {change(kind)['changed']}" if not place else ADDED,
            redrawn="" if place == 2 else fresh,
        )

    def family(id, source, says, *measured, **fields):
        fields = dict(revision="{changed}", redrawn=fresh, words=change) | fields
        return Statement(id, source, f"{says} ({{kind}})", *measured, "median", **fields)

    return (
        Statement(
            "shares",
            "{source}",
            "Matching keeps the clusters' shares twice as well as random subsets ({kind}{more})",
            "the KL over its expectation for random subsets, {place}",
            at_most=KEPT,
            note="{caveat}",
            revision="{revision}",
            redrawn="{redrawn}",
            sample=lambda d, kind, proxy: divergence(d.groups, kind, proxy),
            cells=grid(
                "classes_shares classes_shares_intercept classes_shares_later "
                "one_task_shares one_task_shares_intercept - "
                "own_tasks_shares own_tasks_shares_intercept -",
                kind=ORDER,
                proxy=PROXIES,
            ),
            words=proxy_words,
            message="Matching keeps the clusters' shares twice as well as random subsets, by "
            "proxies with and without an intercept, whatever the labels",
        ),
        family(
            "minority",
            f"{A3}, limitations, open question",
            "Matching teaches the minority no worse than random subsets do",
            "the error of the minority over that of random subsets, at the worst size",
            at_most=1.1,
            revision="bound 1.1, no worse; it was 1; {changed}",
            sample=lambda d, kind: worst(group_error(d.groups, kind, "minority")),
            cells=grid("classes_minority one_task_minority own_tasks_minority", kind=ORDER),
        ),
        family(
            "favours",
            f"{A3}, limitations, open question",
            "What matching gains goes to the majority more than to the minority",
            "the minority's relative error over the majority's, at the size where it is least",
            at_least=1.0,
            sample=lambda d, kind: preference(d.groups, kind),
            cells=grid("classes_favours one_task_favours own_tasks_favours", kind=ORDER),
        ),
        family(
            "strata",
            f"modelled on {A3}, section 4.10",
            "Stratified random subsets teach as well as matched ones",
            "the error, groups weighed as in pools, over that of matching, at the worst size",
            at_most=1.1,
            sample=lambda d, kind: worst(strata_ratio(d.groups, kind)),
            cells=grid("classes_strata one_task_strata own_tasks_strata", kind=ORDER),
        ),
    )


def class_statements(config) -> tuple[Statement, ...]:
    """Those of several classes, whose ids end in their number."""
    where = f"{{classes}} classes, {config.n} shots"
    before = "144, 36, 48 and 12" if config.runs > 48 else "36 and 12"
    row = partial(Statement, redrawn=f"{config.runs} fresh runs, {before} before")
    reading = "the KL was to the pool's shares; in the table it is to the test set's"
    kinds = {
        "plain": dict(proxy="a proxy", source=f"{A3}, table 6, in our setting", caveat=""),
        "intercept": dict(proxy="a proxy with an intercept", source=CONTROL, caveat=TAUTOLOGY),
    }
    matched = partial(row, words=lambda classes, tag: kinds[tag])

    def cells(end):
        pairs = [(f"plain_{k}{end}", f"intercept_{k}{end}") for k in config.classes]
        return grid(" ".join(sum(pairs, ())), classes=config.classes, tag=TAGS)

    return (
        row(
            "random",
            f"{A3}, table 6, in our setting",
            f"Random subsets miss the shares of the classes as far as in the table ({where})",
            "the KL of their shares from a test set's, mean of draws",
            at_least=0.012,
            at_most=0.020,
            note="chance alone gives about (K - 1) / 2n, and as much for n of the test set",
            sample=lambda d, classes: class_values(d, "divergence", classes, "random"),
            cells={f"random_{k}": dict(classes=k) for k in config.classes},
            revision=reading,
            message="Random subsets miss the shares of the classes as far as in the table, "
            "whatever the number of classes",
        ),
        matched(
            "matched",
            "{source}",
            f"Matching by {{proxy}} keeps the shares as well as in the table ({where})",
            "the KL of the subset's shares from a test set's",
            at_most=0.008,
            note="{caveat}",
            sample=lambda d, classes, tag: class_values(d, "divergence", classes, TAGS[tag]),
            cells=cells(""),
            revision=reading,
            message="Matching keeps the shares as well as in the table, by a proxy with an "
            "intercept and without one",
        ),
        matched(
            "error",
            f"{A3}, abstract, in our setting",
            f"Demonstrations matched by {{proxy}} teach the classes better than random ones "
            f"({where})",
            "the share of wrong answers less the mean of random subsets, same queries",
            at_most=0.0,
            sample=lambda d, classes, tag: (
                class_values(d, "wrong", classes, TAGS[tag])
                - class_values(d, "wrong", classes, "random")
            ),
            cells=cells("_error"),
            message="Demonstrations matched by a proxy teach the classes better than random ones, "
            "with an intercept and without one",
        ),
    )
