"""A mesa layer of differenced tokens is the Bayes rule where noise is autoregressive.

Stationary noise of correlation p^|i - j|, w ~ N(0, I/d); for the ratio of risks covariates of the
same kind, with a correlation of their own. docs/theory, "Correlated noise".
"""

import functools

import jax
import numpy as np
import pytest

from draws import jit_numpy, lags, seeds, z_score
from lsa_lab.estimators import ols
from lsa_lab.models import recurrent
from lsa_lab.prompts import Prompt
from population import mesa_layer

N, D, P, NOISE = 9, 3, 0.6, 0.4
MESA, CONFIG = mesa_layer(D, D * NOISE)
answer = jit_numpy(lambda rows: recurrent.predict(MESA, rows, CONFIG))
least_squares = jit_numpy(jax.vmap(lambda x, y: ols(Prompt(x, y, x[0], y[0]))))


def difference(rows, p=P):  # a convolution of width 2, the first row as it is
    later = (rows[1:] - p * rows[:-1]) / np.sqrt(1 - p**2)
    return np.concatenate([rows[:1], later])


def draw(rng, n, *prompts):  # x, w and noise
    root = np.linalg.cholesky(NOISE * P ** lags(n))
    x, w = rng.normal(size=(*prompts, n, D)), rng.normal(size=(*prompts, D)) / D**0.5
    return x, w, rng.normal(size=(*prompts, n)) @ root.T


def predictions(seed, p):  # of the layer, and the posterior mean's
    rng = np.random.default_rng(seed)
    (x, w, noise), query = draw(rng, N), rng.normal(size=D)
    rows = difference(np.column_stack([x, x @ w + noise]), p)
    inverse = np.linalg.inv(NOISE * P ** lags(N))
    moment, towards = x.T @ inverse @ x + D * np.eye(D), x.T @ inverse @ (x @ w + noise)
    predicted = answer(np.vstack([rows, np.append(query, 0.0)]))
    return predicted, query @ np.linalg.solve(moment, towards)


@seeds
def test_a_mesa_layer_of_differences_is_the_posterior_mean(seed):
    np.testing.assert_allclose(*predictions(seed, P), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [0.0, 0.5, -P])
def test_control_tokens_as_they_are_or_other_differences_are_not(p):
    errors = [abs(np.subtract(*predictions(seed, p))) for seed in range(9)]
    assert np.median(errors) > 1e-3


LONG, PROMPTS = 300, 4000


def ratio_of_risks(c):
    return (1 - P**2) * (1 - P * c) / ((1 + P**2 - 2 * P * c) * (1 + P * c))


@functools.cache
def squared_errors(c):
    """|ŵ - w|² [B] of differences and of least squares, for covariates of correlation c^|i - j|."""
    x, w, noise = draw(np.random.default_rng(0), LONG, PROMPTS)
    for t in range(1, LONG):
        x[:, t] = c * x[:, t - 1] + np.sqrt(1 - c**2) * x[:, t]
    rows = np.concatenate([x, (np.einsum("bnd,bd->bn", x, w) + noise)[..., None]], 2)
    white = np.moveaxis(difference(np.moveaxis(rows, 1, 0)), 0, 1)
    return [((least_squares(r[..., :D], r[..., D]) - w) ** 2).sum(1) for r in (white, rows)]


def distance(c, ratio):  # of the errors of differences from the ratio times the others
    white, plain = squared_errors(c)
    return z_score(white - ratio * plain)


@pytest.mark.parametrize("c", [0.0, P, -P])
def test_on_long_prompts_the_ratio_of_risks_is_as_stated(c):
    assert abs(distance(c, ratio_of_risks(c))) < 4


def test_control_the_ratio_of_independent_covariates_is_not_that_of_others():
    assert distance(-P, ratio_of_risks(0.0)) > 10
