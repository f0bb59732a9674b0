"""The estimators against scikit-learn and NumPy, and at their limits."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_rotation, jit_numpy, seed_and, seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

ols, ridge = map(jit_numpy, (estimators.ols, estimators.ridge))
descend, largest_step = map(jit_numpy, (estimators.gradient_descent, estimators.largest_step))
STEPS = jnp.full(3, 0.1)
RULES = {
    "ols": estimators.ols,
    "ridge": lambda p: estimators.ridge(p, 0.1),
    "lasso": lambda p: estimators.lasso(p, 0.1),
    "gradient_descent": lambda p: estimators.gradient_descent(p, STEPS),
    "gradient_descent_plus_plus": lambda p: estimators.gradient_descent_plus_plus(p, STEPS, STEPS),
    "mixed": lambda p: estimators.mixed_gradient_descent(p, STEPS, 2 * STEPS),
    "preprocessed": lambda p: estimators.preprocessed_gradient_descent(p, 0.1, 3),
    "normalised": lambda p: estimators.preprocessed_gradient_descent(p, 0.1, 3, normalise=True),
    "closed form": lambda p: estimators.descent_predictions(
        *estimators.descent_modes(p), [0.1, 0.2], [3, 10]
    ),
    "gaussian": lambda p: estimators.gaussian_posterior_mean(p, 1.0, 0.1),
    "sparse": lambda p: estimators.sparse_posterior_mean(p, 2, 1.0, 0.1),
}


def draw(seed, n, d, rank):
    """X of a given rank, its singular values between √n/2 and 2√n; labels with noise."""
    rng = np.random.default_rng(seed)
    left, right = (draw_rotation(rng, size)[:, :rank] for size in (n, d))
    x = n**0.5 * (left * rng.uniform(0.5, 2.0, rank)) @ right.T
    return Prompt(x, x.sum(1) + rng.normal(size=n), rng.normal(size=d), np.zeros(()))


def cast(prompt, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype), prompt)


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4), (8, 6, 3)])
@seed_and(penalty=(0.01, 5.0))
def test_least_squares_and_ridge_are_those_of_numpy(n, d, rank, seed, penalty):
    prompt = draw(seed, n, d, rank)
    x, y = prompt.x, prompt.y
    least = np.linalg.lstsq(x, y, rcond=1e-12)[0]
    np.testing.assert_allclose(ols(prompt), least, atol=1e-10)
    shrunk = np.linalg.solve(x.T @ x / n + penalty * np.eye(d), x.T @ y / n)
    np.testing.assert_allclose(ridge(prompt, penalty), shrunk, atol=1e-10)
    np.testing.assert_allclose(ridge(prompt, 1e-6), least, atol=1e-4)


def test_ridge_without_penalty_is_least_squares():
    for dtype, penalty in (("float64", 0.0), ("float32", 1e-50)):  # 0 in float32
        prompt = cast(draw(0, 8, 6, 3), dtype)
        np.testing.assert_array_equal(estimators.ridge(prompt, penalty), estimators.ols(prompt))


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4)])
@seeds
def test_the_largest_step_clears_the_steepest_direction_at_once(n, d, rank, seed):
    prompt = draw(seed, n, d, rank)
    step, solution = largest_step(prompt.x), ols(prompt)
    steepest = np.linalg.svd(prompt.x)[2][0]

    def errors(share):  # along the steepest direction, after each step
        return (descend(prompt, np.full(200, share * step)) - solution[None]) @ steepest

    np.testing.assert_allclose(errors(1.0)[1:], 0, atol=1e-10)
    first, last = errors(1.9)[0], errors(1.9)[-1]
    assert abs(last) <= 1e-6 * abs(first) + 1e-10
    assert abs(errors(2.1)[-1]) >= 1e6 * abs(first)
    assert largest_step(0 * prompt.x) == np.inf


@pytest.mark.parametrize("normalise", [False, True])
def test_preprocessed_descent_diverges_beyond_its_step_limit_only(normalise):
    prompt = draw(0, 12, 4, 4)

    @jit_numpy
    def run(share):
        step_size = share * estimators.preprocessed_step_limit(prompt, normalise=normalise)
        rule = estimators.preprocessed_gradient_descent
        return rule(prompt, step_size, 1000, normalise=normalise)[-1]

    assert np.abs(run(0.98)) < 1e2
    assert np.abs(run(1.02)) > 1e6


@pytest.mark.parametrize("name", RULES)
def test_each_rule_can_be_batched_compiled_and_differentiated_in_both_precisions(name):
    rule, step = RULES[name], 1e-5
    run, run_many = jit_numpy(rule), jit_numpy(jax.vmap(rule))
    slopes = jit_numpy(jax.grad(lambda prompt: jnp.sum(rule(prompt))))
    prompts = [draw(seed, 6, 4, 4) for seed in range(3)]
    first, _, last = prompts
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *prompts)
    np.testing.assert_allclose(run_many(batch)[2], run(last), atol=1e-12)
    ends = [jax.tree.map(lambda leaf, s=s: leaf + s * step, last) for s in (1, -1, 0)]
    ahead, behind, _ = run_many(jax.tree.map(lambda *leaves: np.stack(leaves), *ends))
    along = sum(np.sum(leaf) for leaf in jax.tree.leaves(slopes(last)))
    np.testing.assert_allclose(along, np.sum(ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)
    single = run(cast(first, np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, run(first), rtol=1e-3, atol=1e-3)
    empty = first.replace(x=first.x * (np.arange(4) > 0), y=0 * first.y)
    assert not run(empty).any()
    if name not in ("ols", "lasso"):  # these have no derivative where the rank changes
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes(empty)))


@pytest.mark.parametrize(
    ("n", "d", "sparsity", "noise_var"),
    [(1, 4, 2, 1e-8), (3, 4, 3, 1e-8), (9, 13, 3, 0.1)],  # 286: two chunks
)
def test_the_sparse_mean_averages_over_supports_that_explain_all_labels_and_over_many(
    n, d, sparsity, noise_var
):
    prompt = cast(draw(1, n, d, min(n, d)), "float32")
    x, y = (leaf.astype(float) for leaf in (prompt.x, prompt.y))
    evidence, weights = [], np.zeros((math.comb(d, sparsity), d))
    for support, row in zip(itertools.combinations(range(d), sparsity), weights, strict=True):
        columns = x[:, support]
        covariance = columns @ columns.T + noise_var * np.eye(n)
        row[list(support)] = columns.T @ np.linalg.solve(covariance, y)
        log_det = np.linalg.slogdet(covariance)[1]
        evidence.append(-(y @ np.linalg.solve(covariance, y) + log_det) / 2)
    share = np.exp(evidence - np.max(evidence))
    mean = estimators.sparse_posterior_mean(prompt, sparsity, 1.0, noise_var)
    np.testing.assert_allclose(mean, share / share.sum() @ weights, rtol=1e-4, atol=1e-4)
