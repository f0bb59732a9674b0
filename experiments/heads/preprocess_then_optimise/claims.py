"""What `preprocess_then_optimise` judges: ratios of mean excess risks on the same prompts.

The bounds were fixed before its first run. Before it, figures for few steps and for d = 64 were
known from smaller trials (docs/theory, "Trials before the experiments"). In first runs each chose
its own step size, and the search for step sizes started elsewhere; then all was sampled anew, once,
from seed 1. The statements say so. What first layers of trained models write is layer_probes'.
"""

from functools import partial

import numpy as np

from experiments.heads.rule_names import RIDGE
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import parts, results

A4 = "modelled on A4 (2408.04532), abstract"
ANEW = "once, from a fresh seed"


def raw_ratio(dataset):  # (run, depth)
    """Preprocessed steps of sizes of their own, over as many of raw descent."""
    return dataset.fitted.sel(tuned="preprocessed") / dataset.fitted.sel(tuned="raw")


def ridge_ratio(dataset, rule: str) -> np.ndarray:  # [R]
    """A rule's risk over ridge's; runs that diverged count as worse than all others."""
    ratio = (dataset.best.sel(rule=rule) / dataset.of_rule.sel(reference=RIDGE)).values
    return np.where(np.isposinf(ratio), np.finfo(float).max, ratio)


def fewer_heads_ratio(dataset):  # (run, used)
    heads, config = dataset.of_heads, results.config_of(dataset)
    fewer = [str(count) for count in config.heads if count < config.d]
    return heads.sel(used=str(config.d)) / heads.sel(used=fewer)


def cost_of_fewer(dataset):  # [features, run, used < d]
    """The risk with H < d heads over that with d, what is free chosen on other prompts."""
    risk, d = parts.part(dataset, "few_heads").risk, results.config_of(dataset).d
    return risk.sel(used=risk.used < d) / risk.sel(used=d)


def least(ratios) -> np.ndarray:  # [run, ...] -> [run]
    """The runs at the place where their median is least."""
    return worst(ratios.transpose("run", ...), lambda runs: -np.median(runs))


def steps_to_win(dataset, rule: str) -> int | None:
    """The number of steps from which on the median risk of a rule is below that of raw descent."""
    medians = dataset.by_step.median("run")
    ahead = (medians.sel(rule=rule) < medians.sel(rule="raw")).values
    start = len(ahead) - int(np.argmin(np.append(ahead[::-1], False)))
    return int(dataset.t[start]) if start < len(ahead) else None


def statements(config) -> tuple[Statement, ...]:
    median = partial(Statement, source=A4, statistic="median", redrawn=ANEW)
    return (
        median(
            "slow",
            source="derived here",
            says="A few steps on preprocessed covariates, of one size for all prompts, are worse "
            "than as many on raw ones",
            measured="the risk over that of raw descent, at the number of steps where it is least,",
            at_least=1.0,
            sample=lambda d: least(raw_ratio(d)),
        ),
        median(
            "over_ridge",
            says="With a step size for each prompt, and with one for all, descent on x̃ at its best "
            "number of steps beats every rotation-invariant rule linear in the labels",
            measured="the risk over that of ridge, which reaches the bound of such rules,",
            at_most=1.0,
            note="a run in which a prompt diverges counts as worse than all others",
            revision="{changed}",
            sample=ridge_ratio,
            cells=grid("best_step best_step_for_all", rule=("own step", "preprocessed")),
            words=lambda rule: dict(
                changed="a run in which a prompt diverges was refused, until 1 of 36 in the paper "
                "tier was one"
                if rule == "preprocessed"
                else ""
            ),
        ),
        median(
            "heads",
            says="Fewer than d heads preprocess less well",
            measured="the risk with d heads over that with fewer, each at its best step, where it "
            "is most,",
            at_most=0.9,
            sample=lambda d: worst(fewer_heads_ratio(d).transpose("run", ...)),
        ),
        median(
            "fewer_heads",
            says="Descent on features of fewer than d heads, which neighbours share, costs risk "
            "even if the raw covariates stay beside them",
            measured="the risk over that with d heads, where it is least,",
            at_least=1.1,
            revision="each prompt has its own step size, for one size for all exploded on rare "
            "prompts; features beside raw covariates were added",
            redrawn=f"{config.few_heads.runs} fresh runs, 8 before",
            sample=lambda d, features: least(cost_of_fewer(d).sel(features=features)),
            cells=grid("cost cost_beside_raw", features=("alone", "beside raw")),
        ),
    )
