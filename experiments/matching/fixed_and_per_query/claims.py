"""What `fixed_and_per_query` judges: errors of prompts with both parts, over those of one part and
of random demonstrations; what matching gains in clean and in spoilt pools, and how many outliers it
picks. Ratios are those of each run, means of logarithms over its pools."""

from functools import partial

import numpy as np

from experiments.matching.fixed_and_per_query.config import (
    CLEAN,
    EXACT,
    HEAVY,
    KINDS,
    LEARNERS,
    MIXED,
    NOISY_KINDS,
    OUTLIERS,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.store import parts, results

A3 = "A3 (2506.04579)"


def best_share(logs, n):  # [run, ..., fixed] -> [run, ...]
    """The share of per-query demonstrations at which each run errs least."""
    return 1 - logs.fixed[logs.argmin("fixed")] / n


class Prompts:
    """The logarithms of errors of every learner, and what both parts together gain."""

    def __init__(self, dataset):
        self.config, self.noisy = results.config_of(dataset), parts.part(dataset, "noisy")
        self.n = self.config.n
        self.logs = np.log(dataset.error).transpose("run", "learner", "kind", "fixed", "rule")

    def rule_logs(self, learner, rule="matching"):  # [run, kind, fixed]
        return self.logs.sel(learner=learner, rule=rule)

    def both(self, learner, kinds):  # [run, kind]
        """The error with both parts."""
        between = [k for k in self.logs.fixed.values if 0 < k < self.n]
        return self.lowest(learner, kinds, between)

    def lowest(self, learner, kinds, fixed):  # [run, kind]
        """The error at that of these numbers of fixed ones which is best in the other runs."""
        logs = self.rule_logs(learner).sel(kind=list(kinds), fixed=fixed)
        return -best_elsewhere(-logs.values)

    def either_ratio(self, learner):  # [R]
        kinds = "related tasks", "own tasks"
        gains = self.both(learner, kinds) - self.lowest(learner, kinds, [0, self.n])
        return np.exp(gains.mean(1))

    def random_ratio(self, learner):  # [R]
        random = self.rule_logs(learner, "random").sel(fixed=self.n, kind=list(KINDS)).values
        return np.exp((self.both(learner, KINDS) - random).mean(1))

    def noisy_gain(self, learner):  # [run, kind]
        """Logarithms of errors in noisy pools over those of random subsets, mean over the sizes of
        a learner; a trained model has one."""
        noisy = self.config.noisy
        log = np.log(self.noisy.error).sel(learner=learner)
        relative = (log - log.sel(rule="random")).sel(rule="matching").transpose("run", "kind", "n")
        return relative.sel(n=noisy.sizes if learner in EXACT else [noisy.model_size]).mean("n")

    def gain_kept(self, learner, kind):  # [R]
        """What matching leaves of the error of random subsets, over the same in clean pools."""
        gained = self.noisy_gain(learner)
        return np.exp((gained.sel(kind=kind) - gained.sel(kind=CLEAN)).values)

    def outlier_ratio(self):  # [run, kind]
        """The outliers' share among the chosen over that in the pool."""
        share = self.noisy.outliers.sel(rule="matching").mean("n") / self.noisy.pool_outliers
        return share.transpose("run", "kind")


numbers = Prompts


def statements(config) -> tuple[Statement, ...]:
    return (*mixed_statements(config), *noisy_statements(config))


def mixed_statements(config) -> tuple[Statement, ...]:
    def words(learner):
        before = "9 of 4 and twice 9 of 16" if learner in EXACT else "9 of 16"
        source = f"{A3}, hybrid selection"
        return dict(
            source=f"modelled on {source}" if learner in EXACT else f"{source}, in our setting",
            fresh=f"{config.runs} fresh runs of {config.pools} pools; before, {before}",
        )

    family = partial(Statement, statistic="ratio", words=words, redrawn="{fresh}")
    best = "the error at the share that is best in the other runs over that of"
    return (
        family(
            "several_tasks",
            "{source}",
            "Where clusters differ in their tasks, matched and per-query demonstrations together "
            "teach {learner} better than either alone",
            f"{best} all fixed or all per query, the better of the two in the other runs, "
            "geometric mean of related and own tasks",
            at_most=1.0,
            note="our reading: the number of demonstrations stays",
            revision="the two kinds of tasks had a row each; linear attention, which explodes on "
            "such prompts, was there",
            sample=lambda p, learner: p.either_ratio(learner),
            cells=grid("descent_tasks ridge_tasks softmax_attention_tasks", learner=MIXED),
        ),
        family(
            "random",
            "{source}",
            "Matched and per-query demonstrations together teach {learner} better than random ones",
            f"{best} random ones, geometric mean of the kinds",
            at_most=0.8,
            sample=lambda p, learner: p.random_ratio(learner),
            cells=grid("descent_random ridge_random softmax_attention_random", learner=MIXED),
        ),
    )


def noisy_statements(config) -> tuple[Statement, ...]:
    noisy = config.noisy
    fresh = f"{config.runs} fresh runs of {noisy.pools} pools each, 9 of 16 before"

    def words(learner, kind):
        outside = kind == HEAVY and learner not in EXACT
        return dict(
            source=f"modelled on {A3}, abstract"
            if learner in EXACT
            else f"{A3}, abstract, in our setting",
            caveat="random prompts lie outside its training" if outside else "",
            fresh=fresh if learner in EXACT else "",
        )

    row = partial(Statement, statistic="ratio", note="{caveat}", redrawn="{fresh}", words=words)
    over_random = (
        f"the error over that of random subsets, of trained models at n = {noisy.model_size}, "
        "else geometric mean of the sizes"
    )
    return (
        row(
            "gain",
            "{source}",
            "Matched demonstrations teach {learner} better than random ones ({kind})",
            over_random,
            at_most=1.0,
            sample=lambda p, learner, kind: np.exp(p.noisy_gain(learner).sel(kind=kind).values),
            cells=grid(
                "descent_clean descent_few_flipped descent_many_flipped "
                "descent_heavy_covariates descent_heavy_noise ridge_clean ridge_few_flipped "
                "ridge_many_flipped ridge_heavy_covariates ridge_heavy_noise "
                "linear_attention_clean linear_attention_few_flipped "
                "linear_attention_many_flipped linear_attention_heavy_covariates "
                "linear_attention_heavy_noise softmax_attention_clean "
                "softmax_attention_few_flipped softmax_attention_many_flipped "
                "softmax_attention_heavy_covariates softmax_attention_heavy_noise",
                learner=LEARNERS,
                kind=NOISY_KINDS,
            ),
            message="Matched demonstrations teach each learner better than random ones, in clean "
            "pools and in spoilt ones",
        ),
        row(
            "gain_kept",
            f"modelled on {A3}, its method",
            "Matching gains as much for {learner} as in clean pools ({kind})",
            f"{over_random}, over the same in clean pools",
            at_most=1.25,
            sample=lambda p, learner, kind: p.gain_kept(learner, kind),
            cells=grid(
                "descent_few_flipped_kept descent_many_flipped_kept "
                "descent_heavy_covariates_kept descent_heavy_noise_kept ridge_few_flipped_kept "
                "ridge_many_flipped_kept ridge_heavy_covariates_kept ridge_heavy_noise_kept "
                "linear_attention_few_flipped_kept linear_attention_many_flipped_kept "
                "linear_attention_heavy_covariates_kept linear_attention_heavy_noise_kept "
                "softmax_attention_few_flipped_kept softmax_attention_many_flipped_kept "
                "softmax_attention_heavy_covariates_kept softmax_attention_heavy_noise_kept",
                learner=LEARNERS,
                kind=OUTLIERS,
            ),
            message="Each learner gains as much from matching in spoilt pools as in clean ones",
        ),
        Statement(
            "outliers",
            f"modelled on {A3}, its method",
            "Matching picks no more of a pool's outliers than random choice does ({kind})",
            "the outliers' share among the chosen over that in the pool, all pools and sizes "
            "together",
            at_most=1.1,
            note="outliers are flipped labels, the longest covariates or the largest noise",
            redrawn=fresh,
            sample=lambda p, kind: p.outlier_ratio().sel(kind=kind).values,
            cells=grid(
                "few_flipped_outliers many_flipped_outliers heavy_covariates_outliers "
                "heavy_noise_outliers",
                kind=OUTLIERS,
            ),
        ),
    )
