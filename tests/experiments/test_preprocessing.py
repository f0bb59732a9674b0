"""The experiments on features of heads: descent on them, risks with fitted steps, and too few heads
in plain loops."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.heads.preprocess_then_optimise import compute, few_heads
from experiments.heads.preprocess_then_optimise.config import TIERS, TUNED
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample


@pytest.fixture(scope="module")
def prompt():
    x, y, x_query = map(np.random.default_rng(0).standard_normal, ((6, 4), 6, 4))
    return Prompt(x, y, x_query, np.zeros(()))


def test_with_as_many_heads_as_covariates_each_has_one(prompt):
    sums = compute.sums(4, (1, 3, 4))
    np.testing.assert_array_equal(sums[0], np.eye(4)[[0, 0, 0, 0]])
    np.testing.assert_array_equal(sums[1], np.eye(4)[[0, 0, 1, 2]])
    np.testing.assert_array_equal(sums[2], np.eye(4))
    counts = np.array([1, 4])

    @jax.jit
    def both(prompt):
        errors = compute.head_errors(prompt, sums, 0.5, counts)
        size = 0.5 * estimators.preprocessed_step_limit(prompt)
        path = estimators.preprocessed_gradient_descent(prompt, size, 4)[counts]
        return errors, compute.squares(path, prompt)

    (raw, *_, on_heads), squares = map(np.asarray, both(prompt))
    np.testing.assert_allclose(on_heads, squares, rtol=1e-10)
    assert np.abs(raw - on_heads).max() > 1e-3


def test_risks_with_fitted_steps_are_those_of_loops(monkeypatch):
    rng = np.random.default_rng(2)
    shapes = ((2, 3, 4, 2), (2, 3, 4), (2, 3, 2), (2, 3))  # two runs of three prompts
    batch = Prompt(*(jnp.asarray(rng.normal(size=shape)) for shape in shapes))
    tuning = jax.tree.map(lambda leaf: leaf[0], batch)
    thetas = 0.1 * rng.random((len(TUNED), 2, 2, 2))  # rules, depths, raw or not, steps
    thetas[TUNED.index("raw"), :, 1] = thetas[:, 0, :, 1] = 0
    monkeypatch.setattr(compute, "tune", lambda *given: thetas)
    risks = compute.fit_steps(SimpleNamespace(depth=2), batch, tuning)
    assert risks.shape == (2, len(TUNED), 2)
    for r, i, j in np.ndindex(2, len(TUNED), 2):
        total = 0
        for b in range(3):
            x, y, query, target = (np.asarray(leaf)[r, b] for leaf in vars(batch).values())
            moment, w = x.T @ y / 4, np.zeros(2)
            for alpha, beta in thetas[i, j].T:
                w = w + (alpha + beta * moment**2) * (x.T @ (y - x @ w)) / 4
            most = 2 * np.abs(y).max()
            total += (np.clip(w @ query, -most, most) - target) ** 2 / 3
        np.testing.assert_allclose(risks[r, i, j], total, rtol=1e-9)


CONFIG = dataclasses.replace(TIERS["smoke"].few_heads, prompts=3, step_sizes=(0.5, 1.5), n=4)
GROUPS = np.array([[[1.0, 1], [0, 0]], [[1, 0], [0, 1]]])  # of one head, of two


def in_units(x, matrix):
    return matrix / (np.linalg.norm(x @ matrix.T, ord=2) / len(x) ** 0.5)


def paths(x, y, query):  # -> [heads, shares, rates, steps+1]
    values = np.zeros((2, 2, 2, CONFIG.steps + 1))
    for h, s, k in np.ndindex(2, 2, 2):
        share, rate = (0.0, 0.5)[s], CONFIG.step_sizes[k]
        weighed = GROUPS[h] * (x.T @ y / len(y))  # a row for each head
        raw, own = share**0.5 * in_units(x, np.eye(2)), (1 - share) ** 0.5 * in_units(x, weighed)
        features, asked = x @ np.concatenate([raw, own]).T, np.concatenate([raw, own]) @ query
        size, theta = rate * len(y) / np.linalg.norm(features, ord=2) ** 2, np.zeros(4)
        for t in range(CONFIG.steps):
            theta = theta + size * features.T @ (y - features @ theta) / len(y)
            values[h, s, k, t + 1] = theta @ asked
    return values


def test_the_risks_are_those_of_what_is_best_on_other_prompts():
    np.testing.assert_array_equal(compute.sums(2, (1, 2)).swapaxes(1, 2), GROUPS)
    measured = few_heads.measure(CONFIG, 1, (1, 2), GROUPS).risk.values
    assert measured.shape == (2, 2, 2)  # features, runs, heads
    task = LinearTask(4, 2, 1, CONFIG.noise_std, weight_std=1.0, signal="flat")
    draw = jax.jit(jax.vmap(partial(sample, task=task)))
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
