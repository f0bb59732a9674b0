"""What `coverage` judges: shares and errors of matched subsets, over those of random and of
stratified ones, whose errors are the mean of the draws."""

import numpy as np

from experiments.matching.coverage.config import CLASSES, ORDER, PROXIES, WHITE, shares
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import results

A3 = "A3 (2506.04579)"
KEPT = 0.5  # KL of matching over that expected of random subsets
ROWS = dict(zip(PROXIES, ("no intercept", "intercept", "intercept, start left out"), strict=True))
BEFORE_TRAINING = "before training its gradient is the share"
WORST = "at the size that is worst for the other runs"
OVER_EXPECTED = "the KL over its expectation for random subsets"
WEIGHED = "the error, groups weighed as in pools, over that of matching, at the worst size"
WITH_THE_RULE = "added, with the rule, to runs that others had judged"


def relative(dataset):  # [kind, run, n, rule, group]
    """Errors over those of random subsets."""
    return dataset.error / dataset.error.sel(rule="random")


def relative_divergence(dataset):  # [kind, run, n, rule]
    """The KL over its expectation for random subsets."""
    return dataset.divergence / dataset.expected


def over_matching(dataset, rule):  # [kind, run, n]
    """The error of a rule over that of matching, groups weighed by their shares."""
    weights = np.array(shares(results.config_of(dataset)))
    error = (dataset.error * weights).sum("group")
    return error.sel(rule=rule) / error.sel(rule="matching")


def pools(dataset, kind):
    return dataset.sel(kind=kind).transpose("run", "n", ...)


def divergence(dataset, kind, rule):  # [R]
    """The relative KL, of classes at the largest size, which is that of A3's table."""
    values = relative_divergence(pools(dataset, kind)).sel(rule=rule)
    if kind == CLASSES:
        values = values.sel(n=[max(values.n.values)])
    return worst_elsewhere(values, np.mean)


def group_error(dataset, kind, group):  # [run, n]
    return relative(pools(dataset, kind)).sel(rule="matching", group=group)


def preference(dataset, kind):  # [R]
    """The minority's relative error over the majority's."""
    ratio = group_error(dataset, kind, "minority") / group_error(dataset, kind, "majority")
    return worst(ratio, lambda runs: -np.median(runs))


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, 16 before"

    def place(kind):
        return f"n = {max(config.sizes)}" if kind == CLASSES else WORST

    def change(kind):
        loss = "; the logistic loss; it was the squared one" if kind == CLASSES else ""
        return dict(changed=f"pools and sizes were others{loss}")

    def proxy_words(kind, proxy):
        with_intercept = ", with intercept"
        more = ("", with_intercept, f"{with_intercept}, its start left out")[PROXIES.index(proxy)]
        moved = "" if kind == CLASSES else "; the worst size was that of the judged runs"
        mean = f"a mean; it was a median of few values; {change(kind)['changed']}{moved}"
        revisions = (mean, f"added{moved}", "added after a look at these runs")
        caveat = kind == CLASSES and proxy == PROXIES[1]
        return dict(
            source=f"{A3}, table 6, in our setting"
            if kind == CLASSES
            else f"modelled on {A3}, table 6",
            place=place(kind),
            more=more,
            row=ROWS[proxy],
            caveat=BEFORE_TRAINING if caveat else "",
            revision=revisions[PROXIES.index(proxy)],
            redrawn="" if proxy == PROXIES[2] else fresh,
        )

    return (
        Statement(
            "shares",
            "{source}",
            "Matching keeps the clusters' shares twice as well as random subsets ({kind}{more})",
            f"{OVER_EXPECTED}, {{place}}",
            at_most=KEPT,
            note="{caveat}",
            revision="{revision}",
            redrawn="{redrawn}",
            label="{row}, {kind}",
            sample=lambda d, kind, proxy: divergence(d, kind, proxy),
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
        Statement(
            "shares_whitened",
            f"modelled on {A3}, table 6",
            "Whitened matching keeps the clusters' shares twice as well as random subsets ({kind}, "
            "without intercept)",
            f"{OVER_EXPECTED}, {{place}}",
            at_most=KEPT,
            revision=WITH_THE_RULE,
            label="whitened, {kind}",
            sample=lambda d, kind: divergence(d, kind, WHITE),
            cells=grid(
                "classes_shares_whitened one_task_shares_whitened own_tasks_shares_whitened",
                kind=ORDER,
            ),
            words=lambda kind: dict(place=place(kind)),
            message="Whitened matching without an intercept keeps the clusters' shares twice as "
            "well as random subsets, whatever the labels",
        ),
        Statement(
            "minority",
            f"{A3}, limitations, open question",
            "Matching teaches the minority no worse than random subsets do ({kind})",
            "the error of the minority over that of random subsets, at the worst size",
            "median",
            at_most=1.1,
            revision="bound 1.1, no worse; it was 1; {changed}",
            redrawn=fresh,
            label="minority / random, {kind}",
            sample=lambda d, kind: worst(group_error(d, kind, "minority")),
            cells=grid("classes_minority one_task_minority own_tasks_minority", kind=ORDER),
            words=change,
            message="Matching teaches the minority no worse than random subsets do, whatever the "
            "labels",
        ),
        Statement(
            "favours",
            f"{A3}, limitations, open question",
            "What matching gains goes to the majority more than to the minority ({kind})",
            "the minority's relative error over the majority's, at the size where it is least",
            "median",
            at_least=1.0,
            revision="{changed}",
            redrawn=fresh,
            label="minority / majority, {kind}",
            sample=preference,
            cells=grid("classes_favours one_task_favours own_tasks_favours", kind=ORDER),
            words=change,
            message="What matching gains goes to the majority more than to the minority, whatever "
            "the labels",
        ),
        Statement(
            "strata",
            f"modelled on {A3}, section 4.10",
            "Stratified random subsets teach as well as matched ones ({kind})",
            WEIGHED,
            "median",
            at_most=1.1,
            revision="{changed}",
            redrawn=fresh,
            label="stratified / matching, {kind}",
            sample=lambda d, kind: worst(over_matching(pools(d, kind), "stratified")),
            cells=grid("classes_strata one_task_strata own_tasks_strata", kind=ORDER),
            words=change,
            message="Stratified random subsets teach as well as matched ones, whatever the labels",
        ),
        Statement(
            "whitened",
            f"modelled on {A3}, its method",
            "Whitened gradients choose no worse than plain ones ({kind})",
            WEIGHED,
            "median",
            at_most=1.0,
            revision=WITH_THE_RULE,
            label="whitened / matching, {kind}",
            sample=lambda d, kind: worst_elsewhere(over_matching(pools(d, kind), WHITE)),
            cells=grid("classes_whitened one_task_whitened own_tasks_whitened", kind=ORDER),
            message="Whitened gradients choose no worse than plain ones, whatever the labels",
        ),
    )
