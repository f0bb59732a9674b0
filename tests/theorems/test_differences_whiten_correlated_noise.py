"""A mesa layer of differenced tokens is the Bayes rule where noise is autoregressive.

Stationary noise of correlation p^|i - j|, w ~ N(0, I/d); for the ratio of risks covariates of the
same kind, with a correlation of their own. docs/theory, "Correlated noise".
"""

import numpy as np
import pytest

from draws import jit_numpy, lags, regressive_root, seeds, z_score
from lsa_lab.models import recurrent
from population import mesa_layer

N, D, P, NOISE = 9, 3, 0.6, 0.4
MESA, CONFIG = mesa_layer(D, D * NOISE)
answer = jit_numpy(lambda rows: recurrent.predict(MESA, rows, CONFIG))


def difference(rows, p=P):  # [..., n, d], a convolution of width 2, the first row as it is
    later = (rows[..., 1:, :] - p * rows[..., :-1, :]) / np.sqrt(1 - p**2)
    return np.concatenate([rows[..., :1, :], later], -2)


def draw(rng, count, n, c=0.0):  # rows [B, n, d+1] and w [B, d]
    x, w = regressive_root(c, n) @ rng.normal(size=(count, n, D)), rng.normal(size=(count, D))
    noise = NOISE**0.5 * rng.normal(size=(count, n)) @ regressive_root(P, n).T
    y = np.einsum("bnd,bd->bn", x, w) / D**0.5 + noise
    return np.concatenate([x, y[..., None]], 2), w / D**0.5


def predictions(seed, p):  # of the layer, and the posterior mean's
    rng = np.random.default_rng(seed)
    ((rows,), _), query = draw(rng, 1, N), rng.normal(size=D)
    weighted = rows[:, :D].T @ np.linalg.inv(NOISE * P ** lags(N)) @ rows
    predicted = answer(np.vstack([difference(rows, p), np.append(query, 0.0)]))
    return predicted, query @ np.linalg.solve(weighted[:, :D] + D * np.eye(D), weighted[:, D])


@seeds
def test_a_mesa_layer_of_differences_is_the_posterior_mean(seed):
    np.testing.assert_allclose(*predictions(seed, P), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [0.0, 0.5, -P])
def test_control_tokens_as_they_are_or_other_differences_are_not(p):
    errors = [abs(np.subtract(*predictions(seed, p))) for seed in range(9)]
    assert np.median(errors) > 1e-3


def ratio_of_risks(c):
    return (1 - P**2) * (1 - P * c) / ((1 + P**2 - 2 * P * c) * (1 + P * c))


@pytest.mark.parametrize("c", [0.0, P, -P])
def test_on_long_prompts_the_ratio_of_risks_is_as_stated(c):
    """|ŵ - w|² of least squares on differences and on tokens, 300 in each of 4000 prompts."""
    rows, w = draw(np.random.default_rng(0), 4000, 300, c)
    errors = []
    for tokens in (difference(rows), rows):
        moment = tokens.swapaxes(1, 2) @ tokens
        fitted = np.linalg.solve(moment[:, :D, :D], moment[:, :D, D:])[..., 0]
        errors.append(((fitted - w) ** 2).sum(1))
    assert abs(z_score(errors[0] - ratio_of_risks(c) * errors[1])) < 4
    if c < 0:  # Control: the ratio of independent covariates
        assert z_score(errors[0] - ratio_of_risks(0.0) * errors[1]) > 10
