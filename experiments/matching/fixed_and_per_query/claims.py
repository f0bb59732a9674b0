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
BOTH = "the error at the share that is best in the other runs over that of"
EITHER = f"{BOTH} all fixed or all per query, whichever is better in the other runs"
OUTSIDE = "random prompts lie outside its training"  # with heavy covariates, of trained models


def lowest(logs, fixed):  # [run, fixed] -> [run]
    """The error at that of these numbers of fixed ones which is best in the other runs."""
    return -best_elsewhere(-logs.sel(fixed=fixed).values)


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

    def both(self, learner, kind):  # [R]
        """The error with both parts."""
        between = [k for k in self.logs.fixed.values if 0 < k < self.n]
        return lowest(self.rule_logs(learner).sel(kind=kind), between)

    def either_ratio(self, learner):  # [R]
        either = self.rule_logs(learner)
        gains = [
            self.both(learner, kind) - lowest(either.sel(kind=kind), [0, self.n])
            for kind in ("related tasks", "own tasks")
        ]
        return np.exp(np.mean(gains, axis=0))

    def random_ratio(self, learner):  # [R]
        random = self.rule_logs(learner, "random").sel(fixed=self.n, kind=list(KINDS)).values
        return np.exp((np.stack([self.both(learner, kind) for kind in KINDS], 1) - random).mean(1))

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
        exact, before = learner in EXACT, "9 of 4 and twice 9 of 16"
        return dict(
            source=f"modelled on {A3}, hybrid selection"
            if exact
            else f"{A3}, hybrid selection, in our setting",
            fresh=f"{config.runs} fresh runs of {config.pools} pools; before, "
            f"{before if exact else '9 of 16'}",
        )

    def family(id, source, sentence, measured, *ratio, ids, **more):
        shared = dict(cells=grid(ids, learner=MIXED), words=words, redrawn="{fresh}")
        return Statement(id, source, sentence, measured, *ratio, **shared, **more)

    return (
        family(
            "several_tasks",
            "{source}",
            "Where clusters differ in their tasks, matched and per-query demonstrations together "
            "teach {learner} better than either alone",
            f"{EITHER}, geometric mean of related and own tasks",
            "ratio",
            at_most=1.0,
            note="our reading: the number of demonstrations stays",
            revision="one row for the two kinds, it was one for each; linear attention, which "
            "explodes on such prompts, left out",
            sample=lambda p, learner: p.either_ratio(learner),
            ids="descent_tasks ridge_tasks softmax_attention_tasks",
        ),
        family(
            "random",
            "{source}",
            "Both together teach {learner} better than random demonstrations",
            f"{BOTH} random ones, geometric mean of the kinds",
            "ratio",
            at_most=0.8,
            sample=lambda p, learner: p.random_ratio(learner),
            ids="descent_random ridge_random softmax_attention_random",
        ),
    )


def noisy_statements(config) -> tuple[Statement, ...]:
    noisy = config.noisy
    fresh = f"{config.runs} fresh runs of {noisy.pools} pools each, 9 of 16 before"

    def words(learner, kind):
        exact = learner in EXACT
        return dict(
            source=f"modelled on {A3}, abstract" if exact else f"{A3}, abstract, in our setting",
            named=learner.capitalize(),
            place="geometric mean of the sizes" if exact else f"n = {noisy.model_size}",
            caveat=OUTSIDE if kind == HEAVY and not exact else "",
            fresh=fresh if exact else "",
        )

    row = partial(Statement, note="{caveat}", redrawn="{fresh}", words=words)
    return (
        row(
            "gain",
            "{source}",
            "Matched demonstrations teach {learner} better than random ones ({kind})",
            "the error over that of random subsets, {place}",
            "ratio",
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
            "{named} gains as much from matching as in clean pools ({kind})",
            "the error over that of random subsets, over the same in clean pools, {place}",
            "ratio",
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
            "Matching picks no more of the {outliers} than random choice does ({kind})",
            "their share among the chosen over that in the pool, all pools and sizes together",
            at_most=1.1,
            redrawn=fresh,
            sample=lambda p, kind: p.outlier_ratio().sel(kind=kind).values,
            cells=grid(
                "few_flipped_outliers many_flipped_outliers heavy_covariates_outliers "
                "heavy_noise_outliers",
                kind=OUTLIERS,
            ),
            words=lambda kind: dict(outliers=OUTLIERS[kind]),
        ),
    )
