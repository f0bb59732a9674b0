"""What `fixed_and_per_query` judges: errors of prompts with both parts, over those of one part and
of random demonstrations. Ratios are those of each run, means of logarithms over its pools."""

import numpy as np

from experiments.matching.fixed_and_per_query.config import KINDS, TRAINED
from experiments.matching.learners import EXACT, learners
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.store import results

A3 = "A3 (2506.04579), hybrid selection"
BOTH = "the error at the share that is best in the other runs over that of"
EITHER = f"{BOTH} all fixed or all per query, whichever is better in the other runs"
ONE_FOR_TWO = "one row for the two kinds, it was one for each; linear attention, which explodes on "
ONE_FOR_TWO += "such prompts, left out"


def logs(dataset):  # [run, learner, kind, fixed, rule]
    """Logarithms of errors, means over the pools of each run."""
    return np.log(dataset.error).transpose("run", "learner", "kind", "fixed", "rule")


def together(logs, n):  # [run, fixed] -> [run]
    """The error with both parts, at the number of fixed ones that is best in the other runs."""
    return -best_elsewhere(-logs.sel(fixed=[k for k in logs.fixed.values if 0 < k < n]).values)


def alone(logs, n):  # [run, fixed] -> [run]
    """All fixed or all per query, whichever is better in the other runs."""
    return -best_elsewhere(-logs.sel(fixed=[0, n]).values)


def best_share(logs, n):  # [run, ..., fixed] -> [run, ...]
    """The share of per-query demonstrations at which each run errs least."""
    return 1 - logs.fixed[logs.argmin("fixed")] / n


class Prompts:
    """The logarithms of errors of every learner, and what both parts together gain."""

    def __init__(self, dataset):
        self.n, self.logs = results.config_of(dataset).n, logs(dataset)

    def rule_logs(self, learner, rule):  # [run, kind, fixed]
        return self.logs.sel(learner=learner, rule=rule)

    def both(self, learner):  # {kind: [R]}
        matched = self.rule_logs(learner, "matching")
        return {kind: together(matched.sel(kind=kind), self.n) for kind in KINDS}

    def either_ratio(self, learner, kinds):  # [R]
        matched, both = self.rule_logs(learner, "matching"), self.both(learner)
        gains = [both[kind] - alone(matched.sel(kind=kind), self.n) for kind in kinds]
        return np.exp(np.mean(gains, axis=0))

    def random_ratio(self, learner):  # [R]
        random = self.rule_logs(learner, "random").sel(fixed=self.n, kind=list(KINDS)).values
        return np.exp((np.stack(list(self.both(learner).values()), 1) - random).mean(1))

    def part_ratio(self, learner):  # [R]
        part = self.rule_logs(learner, "matching") - self.rule_logs(learner, "random")
        return np.exp(part.sel(fixed=self.n // 2).mean("kind").values)

    def moved(self, learner):  # [R]
        """The best share per query with tasks of their own less that with one task."""
        shares = best_share(self.rule_logs(learner, "matching"), self.n)
        return shares.sel(kind="own tasks").values - shares.sel(kind="one task").values


def numbers(dataset) -> Prompts:
    return Prompts(dataset)


def statements(config) -> tuple[Statement, ...]:
    def cells_of_learners(ids):
        cells = grid(ids, learner=(*EXACT, *TRAINED))
        return having(cells, learner=learners(config))

    def words(learner):
        exact = learner in EXACT
        before = "9 of 4 and twice 9 of 16" if exact else "9 of 16"
        return dict(
            source=f"modelled on {A3}" if exact else f"{A3}, in our setting",
            fresh=f"{config.runs} fresh runs of {config.pools} pools; before, {before}",
        )

    redrawn = dict(words=words, redrawn="{fresh}")
    return (
        Statement(
            "several_tasks",
            "{source}",
            "Where clusters differ in their tasks, matched and per-query demonstrations together "
            "teach {learner} better than either alone",
            f"{EITHER}, geometric mean of related and own tasks",
            "ratio",
            at_most=1.0,
            note="our reading: the number of demonstrations stays",
            revision=ONE_FOR_TWO,
            label="{learner}: both / either, several tasks",
            sample=lambda p, learner: p.either_ratio(learner, ("related tasks", "own tasks")),
            cells=cells_of_learners("descent_tasks ridge_tasks softmax_attention_tasks"),
            message="Where clusters differ in their tasks, matched and per-query demonstrations "
            "together teach each learner better than either alone",
            **redrawn,
        ),
        Statement(
            "one_task",
            "derived here",
            "With one task both together teach {learner} no worse than the better of them",
            EITHER,
            "ratio",
            at_most=1.1,
            revision="bound 1.1, no worse; it was 1",
            label="{learner}: both / either, one task",
            sample=lambda p, learner: p.either_ratio(learner, ("one task",)),
            cells=cells_of_learners("descent_one_task ridge_one_task softmax_attention_one_task"),
            message="With one task both together teach each learner no worse than the better of "
            "them",
            **redrawn,
        ),
        Statement(
            "random",
            "{source}",
            "Both together teach {learner} better than random demonstrations",
            f"{BOTH} random ones, geometric mean of the kinds",
            "ratio",
            at_most=0.8,
            label="{learner}: both / random",
            sample=lambda p, learner: p.random_ratio(learner),
            cells=cells_of_learners("descent_random ridge_random softmax_attention_random"),
            message="Both together teach each learner better than random demonstrations",
            **redrawn,
        ),
        Statement(
            "part",
            "derived here",
            "Beside demonstrations of the query's own, {learner} learns more from matched fixed "
            "ones than from random fixed ones",
            f"the error over that with a random fixed part, {config.n // 2} of {config.n} fixed, "
            "geometric mean of the kinds",
            "ratio",
            at_most=1.0,
            label="{learner}: matched / random part",
            sample=lambda p, learner: p.part_ratio(learner),
            cells=cells_of_learners("descent_part ridge_part softmax_attention_part"),
            message="Beside demonstrations of the query's own, each learner learns more from "
            "matched fixed ones than from random fixed ones",
            **redrawn,
        ),
        Statement(
            "share",
            "derived here",
            "Where clusters have tasks of their own, more of the best prompt of {learner} is the "
            "query's own",
            "the best share per query with tasks of their own less that with one task",
            at_least=0.2,
            sample=lambda p, learner: p.moved(learner),
            cells=cells_of_learners("descent_share ridge_share softmax_attention_share"),
            message="Where clusters have tasks of their own, more of each learner's best prompt is "
            "the query's own",
            **redrawn,
        ),
    )
