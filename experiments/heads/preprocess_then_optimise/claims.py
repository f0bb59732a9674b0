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

HERE = "derived here"
A4 = "modelled on A4 (2408.04532), abstract"

OVER_RAW = "the risk over that of raw descent"
ANEW = "sampled anew, once, from a fresh seed"


class Ratios:
    """Ratios of a result's risks on the same prompts."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    def raw_ratio(self):  # (run, depth)
        """Preprocessed steps of sizes of their own, over as many of raw descent."""
        fitted = self.dataset.fitted.transpose("run", ...)
        return fitted.sel(tuned="preprocessed") / fitted.sel(tuned="raw")

    def ridge_ratio(self, rule: str) -> np.ndarray:  # [R]
        ratio = self.dataset.best / self.dataset.of_rule.sel(reference=RIDGE)
        return infinite_as_largest(ratio.sel(rule=rule).values)

    def fewer_heads_ratio(self):  # (run, used)
        heads, d = self.dataset.of_heads.transpose("run", ...), self.config.d
        fewer = [str(count) for count in self.config.heads if count < d]
        return heads.sel(used=str(d)) / heads.sel(used=fewer)

    def cost_of_fewer(self):  # [features, run, used < d]
        """The risk with H < d heads over that with d, what is free chosen on other prompts."""
        risk = parts.part(self.dataset, "few_heads").risk
        return risk.sel(used=risk.used < self.config.d) / risk.sel(used=self.config.d)


numbers = Ratios


def least(ratios) -> np.ndarray:  # [run, ...] -> [run]
    """The runs at the place where their median is least."""
    return worst(ratios.transpose("run", ...), lambda runs: -np.median(runs))


def infinite_as_largest(ratios: np.ndarray) -> np.ndarray:  # [R]
    """A median may hold runs that diverged, as worse than all others."""
    return np.where(np.isposinf(ratios), np.finfo(float).max, ratios)


def steps_to_win(dataset, rule: str) -> int | None:
    """The number of steps from which on the median risk of a rule is below that of raw descent."""
    medians = dataset.by_step.median("run")
    ahead = (medians.sel(rule=rule) < medians.sel(rule="raw")).values
    start = len(ahead) - int(np.argmin(np.append(ahead[::-1], False)))
    return int(dataset.t[start]) if start < len(ahead) else None


# What differs between a step size for each prompt, and one for all.
BEST_STEP = {
    "own step": dict(
        begin="At its best step descent on x̃ beats every rotation-invariant rule linear in the "
        "labels",
        bound=", which reaches the bound,",
        diverged="",
        looked="",
    ),
    "preprocessed": dict(
        begin="It does so even with one step size for all prompts, if the steps are many enough",
        bound="",
        diverged="a run in which a prompt diverges counts as worse than all others",
        looked="such a run was refused, before 1 of 36 in the paper tier was one",
    ),
}


FEATURES = {
    "alone": dict(
        says="Descent on features of fewer than d heads, which neighbours share, costs risk",
        revision="a step size for each prompt; the same for all exploded on rare ones",
    ),
    "beside raw": dict(
        says="It costs risk even if the raw covariates stay beside the features", revision="added"
    ),
}


def statements(config) -> tuple[Statement, ...]:
    slow = Statement(
        "slow",
        HERE,
        "A few steps on preprocessed covariates, of one size for all prompts, are worse than as "
        "many on raw ones",
        f"{OVER_RAW}, at the number of steps where it is least,",
        "median",
        at_least=1.0,
        redrawn=ANEW,
        sample=lambda r: least(r.raw_ratio()),
    )
    cost = Statement(
        "fewer_heads",
        A4,
        "{says}",
        "the risk over that with d heads, where it is least,",
        "median",
        at_least=1.1,
        revision="{revision}",
        redrawn=f"{config.few_heads.runs} fresh runs, 8 before",
        sample=lambda r, features: least(r.cost_of_fewer().sel(features=features)),
        cells=grid("cost cost_beside_raw", features=FEATURES),
        words=lambda features: FEATURES[features],
        message="Descent on features of fewer than d heads, which neighbours share, costs risk "
        "even if the raw covariates stay beside them",
    )
    return (slow, *_about_many_steps(), cost)


def _about_many_steps():
    median = partial(Statement, source=A4, statistic="median", redrawn=ANEW)
    yield median(
        "over_ridge",
        says="{begin}",
        measured="the risk over that of ridge{bound}",
        at_most=1.0,
        note="{diverged}",
        revision="{looked}",
        sample=lambda r, rule: r.ridge_ratio(rule),
        cells=grid("best_step best_step_for_all", rule=BEST_STEP),
        words=lambda rule: BEST_STEP[rule],
        message="With a step size for each prompt, and with one for all, descent on x̃ at its best "
        "number of steps beats every rotation-invariant rule linear in the labels",
    )
    yield median(
        "heads",
        says="Fewer than d heads preprocess less well",
        measured="the risk with d heads over that with fewer, each at its best step, where it is "
        "most,",
        at_most=0.9,
        sample=lambda r: worst(r.fewer_heads_ratio()),
    )
