"""Polynomial features are orthonormal and complete; prompts are linear in them."""

import itertools
import math

import jax
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.tasks import polynomial as tasks
from lsa_lab.tasks.polynomial import PolynomialTask, exponents, sample, sample_weights

features = jit_numpy(tasks.features, static_argnums=1)


def draw(task, count, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    return jit_numpy(jax.vmap(lambda key: sample(key, task)))(keys)


@pytest.mark.parametrize(("d", "degree"), [(1, 4), (3, 2), (2, 3)])
def test_features_are_orthonormal_under_the_gaussian_law(d, degree):
    """By quadrature, exact for polynomials of this degree."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(degree + 1)
    grid = np.array(list(itertools.product(nodes, repeat=d)))
    mass = np.array([math.prod(w) for w in itertools.product(weights, repeat=d)])
    mass /= mass.sum()
    phi = features(grid, degree)
    assert phi.shape[1] == PolynomialTask(1, d, degree).num_features
    np.testing.assert_allclose(phi.T @ (mass[:, None] * phi), np.eye(phi.shape[1]), atol=1e-10)
    np.testing.assert_allclose(mass @ phi, 0, atol=1e-10)
    monomials = grid[:, :1] ** degree  # Control: powers are not orthonormal.
    assert np.abs(monomials.T @ (mass[:, None] * monomials) - 1).max() > 0.1 or degree == 1


def test_features_are_hermite_polynomials_in_the_order_of_their_exponents():
    x = np.random.default_rng(0).normal(size=(5, 3))
    found = features(x, 3)
    rows = exponents(3, 3)
    np.testing.assert_array_equal(rows[:4], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0]])
    assert len(set(map(tuple, rows))) == len(rows)
    for k, column in zip(rows, found.T, strict=True):
        stated = np.ones(5)
        for power, values in zip(k, x.T, strict=True):
            unit = np.eye(4)[power]
            stated *= np.polynomial.hermite_e.hermeval(values, unit) / math.factorial(power) ** 0.5
        np.testing.assert_allclose(column, stated, atol=1e-10)
    np.testing.assert_allclose(features(x[0], 3), found[0], atol=1e-12)


@pytest.mark.parametrize("raw", [False, True])
def test_labels_are_linear_in_the_features_and_not_in_the_covariates(raw):
    task = PolynomialTask(n=12, d=2, raw=raw)
    batch = draw(task, 30)
    assert batch.x.shape == (30, 12, task.width)
    for x, y, query, target in zip(*map(np.asarray, jax.tree.leaves(batch)), strict=True):
        rows, asked = (features(z, 2) for z in (x, query)) if raw else (x, query)
        w, _, rank, _ = np.linalg.lstsq(rows, y, rcond=None)
        assert rank == 5
        np.testing.assert_allclose(asked @ w, target, atol=1e-8)
        line = rows[:, :2] @ np.linalg.lstsq(rows[:, :2], y, rcond=None)[0]
        assert np.abs(line - y).max() > 1e-3  # Control


def test_sparse_weights_have_exactly_s_features_and_noise_spares_the_target():
    task = PolynomialTask(n=4, d=3, sparsity=2, weight_std=0.5)
    keys = jax.random.split(jax.random.key(0), 1000)
    weights = np.asarray(jax.jit(jax.vmap(lambda key: sample_weights(key, task)))(keys))
    assert ((weights != 0).sum(1) == 2).all()
    assert np.ptp((weights != 0).mean(0)) < 0.1
    assert abs((weights**2).sum(1).mean() - 2 * 0.25) < 0.08
    noisy, quiet = draw(task.replace(noise_std=0.7), 1000), draw(task, 1000)
    np.testing.assert_array_equal(noisy.y_query, quiet.y_query)
    assert abs((noisy.y - quiet.y).std() - 0.7) < 0.05
