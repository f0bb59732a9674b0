"""A mesa layer of differenced tokens is the Bayes rule where noise is autoregressive.

docs/theory, "Correlated noise". Sides: the layer's answers on tokens convolved with their
predecessors; the posterior mean with the noise's covariance, by NumPy, and the ratio of risks.
Hypotheses: stationary noise of correlation p^|i - j|, w ~ N(0, I/d), and for the ratio covariates
of the same kind, with a correlation of their own.
"""

import functools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds, z_score
from lsa_lab.estimators import ols
from lsa_lab.models import recurrent
from lsa_lab.prompts import Prompt

N, D, KEPT, NOISE = 9, 3, 0.6, 0.4  # p, which the noise keeps of itself


def correlation(n):
    return KEPT ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def differenced(rows, kept=KEPT):  # a convolution of width 2, the first row as it is
    later = (rows[1:] - kept * rows[:-1]) / np.sqrt(1 - kept**2)
    return np.concatenate([rows[:1], later])


KEYS, SLOT = np.eye(D, D + 1)[None, None], np.eye(D + 1)[None, None, -1:]
MESA = recurrent.Params(
    w_q=KEYS,
    w_k=KEYS,
    w_v=SLOT,
    w_o=-SLOT.swapaxes(2, 3),
    w_step=np.zeros((1, 1, 1, D + 1)),
    b_step=np.full((1, 1, 1), np.inf),  # steps of 1 and open gates
    w_gate=np.zeros((1, 1, 1, D + 1)),
    b_gate=np.full((1, 1, 1), np.inf),
    log_penalty=np.full((1, 1), np.log(D * NOISE)),
)
CONFIG = recurrent.Config("mesa", D + 1, key_width=D, value_width=1)
answer = jit_numpy(lambda rows: recurrent.predict(MESA, rows, CONFIG))
least_squares = jit_numpy(jax.vmap(lambda x, y: ols(Prompt(x, y, x[0], y[0]))))


def draw(rng, n, *prompts):
    x, w = rng.normal(size=(*prompts, n, D)), rng.normal(size=(*prompts, D)) / D**0.5
    root = np.linalg.cholesky(NOISE * correlation(n))
    y = np.einsum("...nd,...d->...n", x, w) + rng.normal(size=(*prompts, n)) @ root.T
    return x, y, w


def predictions(seed, kept):  # of the layer, and the posterior mean
    rng = np.random.default_rng(seed)
    x, y, _ = draw(rng, N)
    query = rng.normal(size=D)
    rows = differenced(np.concatenate([x, y[:, None]], 1), kept)
    inverse = np.linalg.inv(NOISE * correlation(N))
    posterior = np.linalg.solve(x.T @ inverse @ x + D * np.eye(D), x.T @ inverse @ y)
    return answer(np.concatenate([rows, np.append(query, 0.0)[None]])), query @ posterior


@seeds
def test_a_mesa_layer_of_differences_is_the_posterior_mean(seed):
    left, right = predictions(seed, KEPT)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kept", [0.0, 0.5, -KEPT])
def test_control_tokens_as_they_are_or_other_differences_are_not(kept):
    errors = [abs(np.subtract(*predictions(seed, kept))) for seed in range(9)]
    assert np.median(errors) > 1e-3


LONG, PROMPTS = 300, 4000


def stated(steady):
    product = KEPT * steady
    return (1 - KEPT**2) * (1 - product) / ((1 + KEPT**2 - 2 * product) * (1 + product))


@functools.cache
def errors(steady):
    """|ŵ - w|² [B] of differences and of least squares; covariates keep ``steady`` as noise p."""
    x, y, w = draw(np.random.default_rng(0), LONG, PROMPTS)
    noise = y - np.einsum("bnd,bd->bn", x, w)
    for t in range(1, LONG):
        x[:, t] = steady * x[:, t - 1] + np.sqrt(1 - steady**2) * x[:, t]
    y = np.einsum("bnd,bd->bn", x, w) + noise
    rows = np.moveaxis(differenced(np.moveaxis(np.concatenate([x, y[..., None]], 2), 1, 0)), 0, 1)
    white = ((least_squares(rows[..., :D], rows[..., D]) - w) ** 2).sum(1)
    return white, ((least_squares(x, y) - w) ** 2).sum(1)


def apart(steady, ratio):  # of the errors of differences less the ratio times the others
    white, plain = errors(steady)
    return z_score(white - ratio * plain)


@pytest.mark.parametrize("steady", [0.0, KEPT, -KEPT])
def test_on_long_prompts_the_ratio_of_risks_is_as_stated(steady):
    assert abs(apart(steady, stated(steady))) < 4


def test_control_the_ratio_of_independent_covariates_is_not_that_of_others():
    assert apart(-KEPT, stated(0.0)) > 10
