"""Errors of prompts with both parts, over those of one part alone and of random demonstrations."""

import numpy as np

from experiments.matching.fixed_and_per_query.config import KINDS
from experiments.matching.learners import learners, tag
from lsa_lab import results
from lsa_lab.statistics import best_elsewhere


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


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config, every = results.config_of(dataset), logs(dataset)
    n, by_id = config.n, {}
    for learner in learners(config):
        of_learner = every.sel(learner=learner)
        matched = of_learner.sel(rule="matching")
        random = of_learner.sel(rule="random")
        both = {kind: together(matched.sel(kind=kind), n) for kind in KINDS}
        gained = {kind: log - alone(matched.sel(kind=kind), n) for kind, log in both.items()}
        by_id[f"{tag(learner)}_one_task"] = np.exp(gained.pop("one task"))
        by_id[f"{tag(learner)}_tasks"] = np.exp(np.mean(list(gained.values()), axis=0))
        over = np.stack(list(both.values()), 1) - random.sel(fixed=n, kind=list(KINDS)).values
        by_id[f"{tag(learner)}_random"] = np.exp(over.mean(1))
        part = (matched - random).sel(fixed=n // 2).mean("kind")
        by_id[f"{tag(learner)}_part"] = np.exp(part.values)
        shares = best_share(matched, n)
        apart, common = (shares.sel(kind=kind).values for kind in ("own tasks", "one task"))
        by_id[f"{tag(learner)}_share"] = apart - common
    return by_id
