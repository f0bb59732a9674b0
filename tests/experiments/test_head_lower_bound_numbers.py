"""The experiment on too few heads: descent on their features in plain loops."""

import dataclasses

import jax
import numpy as np

from experiments.heads.head_lower_bound import risks
from experiments.heads.head_lower_bound.config import TIERS
from lsa_lab.tasks.linear import LinearTask, sample

CONFIG = dataclasses.replace(TIERS["smoke"], prompts=3, runs=2, step_sizes=(0.5, 1.5), n=4)
GROUPS = ([[1, 1], [0, 0]], [[1, 0], [0, 1]])  # of one head, of two


def in_units(x, matrix):
    return matrix / (np.linalg.norm(x @ matrix.T, ord=2) / len(x) ** 0.5)


def paths(x, y, query):  # -> [heads, shares, rates, steps+1]
    values = np.zeros((2, 2, 2, CONFIG.steps + 1))
    for h, s, k in np.ndindex(2, 2, 2):
        share, rate = (0.0, 0.5)[s], CONFIG.step_sizes[k]
        weighed = np.array(GROUPS[h]) * (x.T @ y / len(y))  # a row for each head
        raw, own = share**0.5 * in_units(x, np.eye(2)), (1 - share) ** 0.5 * in_units(x, weighed)
        features, asked = x @ np.concatenate([raw, own]).T, np.concatenate([raw, own]) @ query
        size, theta = rate * len(y) / np.linalg.norm(features, ord=2) ** 2, np.zeros(4)
        for t in range(CONFIG.steps):
            theta = theta + size * features.T @ (y - features @ theta) / len(y)
            values[h, s, k, t + 1] = theta @ asked
    return values


def test_the_risks_are_those_of_what_is_best_on_other_prompts():
    measured = risks.risks(CONFIG)
    assert measured.shape == (2, 2, 2)  # features, runs, heads
    draw = jax.jit(
        jax.vmap(
            lambda key: sample(
                key, LinearTask(4, 2, 1, noise_std=CONFIG.noise_std, weight_std=1.0, signal="flat")
            )
        )
    )
    for r, key in enumerate(jax.random.split(jax.random.key(CONFIG.seed), 2)):
        batch = map(np.asarray, vars(draw(jax.random.split(key, 6))).values())
        rows = [
            (paths(x, y, query) - target) ** 2 for x, y, query, target in zip(*batch, strict=True)
        ]
        first, second = np.mean(rows[:3], axis=0), np.mean(rows[3:], axis=0)
        for h in range(2):
            for f, shares in enumerate((slice(1), slice(2))):  # without raw covariates, and with
                best = np.argmin(first[h, shares])
                assert abs(measured[f, r, h] - second[h, shares].ravel()[best]) < 1e-9
