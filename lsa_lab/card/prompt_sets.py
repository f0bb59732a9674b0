"""Sets of prompts on which known rules predict differently."""

from dataclasses import replace

import numpy as np

from lsa_lab.card.batches import Batch, PromptDistribution, draw_batch, make_batch


def draw_prompt_sets(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> dict[str, tuple[Batch, int]]:
    """Draw the sets by name, each with the number of demonstrations that a model reads."""
    n = 2 * max(n // 4, distribution.d)
    training = draw_batch(rng, distribution, size, n)
    stretched = replace(distribution, stretch=2.0)
    enlarged = replace(distribution, scale=1.5)
    noisier = replace(distribution, noise_std=2 * distribution.noise_std)
    return {
        "few demonstrations": (training, max(distribution.d // 2, 2)),
        "many demonstrations": (training, n),
        "stretched covariates": (draw_batch(rng, stretched, size, n), n),
        "enlarged covariates": (draw_batch(rng, enlarged, size, n), n),
        "noisier labels": (draw_batch(rng, noisier, size, n), n),
        "repeated keys": (draw_repeated_keys(rng, distribution, size, n // 2)[0], n),
    }


def draw_repeated_keys(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, pairs: int
) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Draw prompts whose second half repeats the keys of the first, with labels of another w.

    Returns the batch, and the targets of the old and the new w at the query.
    """
    d = distribution.d
    half = draw_batch(rng, replace(distribution, tasks=None), size, pairs)
    old, new = (rng.normal(size=(size, 1, d)) / np.sqrt(d) for _ in range(2))
    x = np.concatenate([half.x[:, :-1], half.x], 1)
    weights = np.concatenate([np.repeat(old, pairs, 1), np.repeat(new, pairs + 1, 1)], 1)
    targets = (x * weights).sum(-1)
    labels = targets + distribution.noise_std * rng.normal(size=targets.shape)
    return make_batch(x, targets, labels), (x[:, -1] * old[:, 0]).sum(-1), targets[:, -1]
