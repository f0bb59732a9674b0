"""What `noisy_pools` judges: what matching gains in clean and in spoilt pools, and how many of the
outliers it picks. Ratios are those of each run, means of logarithms over its pools."""

import numpy as np

from experiments.matching.learners import EXACT, learners
from experiments.matching.noisy_pools.config import CLEAN, HEAVY, KINDS, OUTLIERS, TRAINED
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import results

A3 = "A3 (2506.04579)"
OUTSIDE = "random prompts lie outside its training"  # with heavy covariates, of trained models


def logs(dataset):  # [run, learner, kind, n, rule]
    """Logarithms of errors over those of random subsets, of either the mean over the pools."""
    log = np.log(dataset.error)
    relative = log - log.sel(rule="random")
    return relative.transpose("run", "learner", "kind", "n", "rule")


def over_random(dataset, learner, rule="matching"):  # [run, kind]
    """Mean over the sizes of a learner; a trained model has one."""
    config = results.config_of(dataset)
    sizes = config.sizes if learner in EXACT else [config.model_size]
    return logs(dataset).sel(learner=learner, rule=rule, n=sizes).mean("n")


def picked(dataset, rule="matching"):  # [run, kind]
    """The outliers' share among the chosen over that in the pool."""
    share = dataset.outliers.sel(rule=rule).mean("n")
    return (share / dataset.pool_outliers).transpose("run", "kind")


def gain_kept(dataset, learner, kind):  # [R]
    """What matching leaves of the error of random subsets, over the same in clean pools."""
    gained = over_random(dataset, learner)
    return np.exp((gained.sel(kind=kind) - gained.sel(kind=CLEAN)).values)


def over_pool(dataset, kind):  # [R]
    """The error of descent after the most matched demonstrations over that after the pool."""
    most = max(results.config_of(dataset).sizes)
    matched = dataset.error.sel(learner="descent", rule="matching", n=most)
    return (matched / dataset.pool_error).sel(kind=kind).values


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs of {config.pools} pools each, 9 of 16 before"
    every = dict(learner=(*EXACT, *TRAINED))
    present = dict(learner=learners(config))

    def words(learner, kind):
        exact = learner in EXACT
        return dict(
            source=f"modelled on {A3}, abstract" if exact else f"{A3}, abstract, in our setting",
            named=learner.capitalize(),
            place="geometric mean of the sizes" if exact else f"n = {config.model_size}",
            caveat=OUTSIDE if kind == HEAVY and not exact else "",
            fresh=fresh if exact else "",
        )

    return (
        Statement(
            "gain",
            "{source}",
            "Matched demonstrations teach {learner} better than random ones ({kind})",
            "the error over that of random subsets, {place}",
            "ratio",
            at_most=1.0,
            note="{caveat}",
            redrawn="{fresh}",
            label="{learner}, {kind}",
            sample=lambda d, learner, kind: np.exp(over_random(d, learner).sel(kind=kind).values),
            cells=having(
                grid(
                    "descent_clean descent_few_flipped descent_many_flipped "
                    "descent_heavy_covariates descent_heavy_noise "
                    "ridge_clean ridge_few_flipped ridge_many_flipped "
                    "ridge_heavy_covariates ridge_heavy_noise "
                    "linear_attention_clean linear_attention_few_flipped "
                    "linear_attention_many_flipped linear_attention_heavy_covariates "
                    "linear_attention_heavy_noise "
                    "softmax_attention_clean softmax_attention_few_flipped "
                    "softmax_attention_many_flipped softmax_attention_heavy_covariates "
                    "softmax_attention_heavy_noise",
                    **every,
                    kind=KINDS,
                ),
                **present,
            ),
            words=words,
            message="Matched demonstrations teach each learner better than random ones, in clean "
            "pools and in spoilt ones",
        ),
        Statement(
            "gain_kept",
            f"modelled on {A3}, its method",
            "{named} gains as much from matching as in clean pools ({kind})",
            "the error over that of random subsets, over the same in clean pools, {place}",
            "ratio",
            at_most=1.25,
            note="{caveat}",
            redrawn="{fresh}",
            label="{learner}, {kind} / clean",
            sample=gain_kept,
            cells=having(
                grid(
                    "descent_few_flipped_kept descent_many_flipped_kept "
                    "descent_heavy_covariates_kept descent_heavy_noise_kept "
                    "ridge_few_flipped_kept ridge_many_flipped_kept "
                    "ridge_heavy_covariates_kept ridge_heavy_noise_kept "
                    "linear_attention_few_flipped_kept linear_attention_many_flipped_kept "
                    "linear_attention_heavy_covariates_kept linear_attention_heavy_noise_kept "
                    "softmax_attention_few_flipped_kept softmax_attention_many_flipped_kept "
                    "softmax_attention_heavy_covariates_kept softmax_attention_heavy_noise_kept",
                    **every,
                    kind=OUTLIERS,
                ),
                **present,
            ),
            words=words,
            message="Each learner gains as much from matching in spoilt pools as in clean ones",
        ),
        Statement(
            "whole_pool",
            f"modelled on {A3}, its method",
            f"{max(config.sizes)} matched demonstrations teach descent nearly as the whole pool "
            "does ({kind})",
            f"the error over that of all {config.m}",
            "ratio",
            at_most=1.5,
            redrawn=fresh,
            label="matching / pool, {kind}",
            sample=over_pool,
            cells=grid(
                "clean_pool few_flipped_pool many_flipped_pool heavy_covariates_pool "
                "heavy_noise_pool",
                kind=KINDS,
            ),
            message=f"{max(config.sizes)} matched demonstrations teach descent nearly as the whole "
            "pool does, be it clean or spoilt",
        ),
        Statement(
            "outliers",
            f"modelled on {A3}, its method",
            "Matching picks no more of the {outliers} than random choice does ({kind})",
            "their share among the chosen over that in the pool, all pools and sizes together",
            at_most=1.1,
            redrawn=fresh,
            label="outliers, {kind}",
            sample=lambda d, kind: picked(d).sel(kind=kind).values,
            cells=grid(
                "few_flipped_outliers many_flipped_outliers heavy_covariates_outliers "
                "heavy_noise_outliers",
                kind=OUTLIERS,
            ),
            words=lambda kind: dict(outliers=OUTLIERS[kind]),
            message="Matching picks no more of a pool's outliers than random choice does",
        ),
    )
