"""A mesa layer with penalty dσ² is the Bayes rule after every demonstration.

docs/theory, "Learning curve of ridge regression". Sides: the layer's state; ridge on every
prefix by NumPy, and its risk by quadrature. Hypotheses: open gates, steps of 1, penalty λ = dσ².
"""

import jax
import numpy as np
import pytest

from lsa_lab.models import recurrent
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import depth, learning_curves

N, D, NOISE = 6, 3, 0.4


def mesa(penalty, gate=np.inf):
    rows = np.eye(D, D + 1)[None, None]
    return recurrent.Params(
        w_q=rows,
        w_k=rows,
        w_v=np.eye(D + 1)[None, None, -1:],
        w_o=-np.eye(D + 1)[None, None, :, -1:],
        w_step=np.zeros((1, 1, 1, D + 1)),
        b_step=np.full((1, 1, 1), np.inf),
        w_gate=np.zeros((1, 1, 1, D + 1)),
        b_gate=np.full((1, 1, 1), gate),
        log_penalty=np.full((1, 1), np.log(penalty)),
    )


def prompt(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(N + 1, D)), rng.normal(size=D) / D**0.5
    y = x @ w + NOISE**0.5 * rng.normal(size=N + 1)
    return Prompt(x[:-1], y[:-1], x[-1], np.asarray(y[-1]))


def states(solve, **weights):  # [N, D]
    config = recurrent.Config("mesa", D + 1, key_width=D, value_width=1, solve=solve)
    run = jax.jit(lambda params, prompt: recurrent.states(params, tokens(prompt), config))
    return np.asarray(run(mesa(**weights), prompt(0)))[0, 0, :-1, :, 0]


def ridge_of_prefixes(penalty):  # [N, D]
    whole, rows = prompt(0), []
    for t in range(1, N + 1):
        x, y = whole.x[:t], whole.y[:t]
        rows.append(np.linalg.solve(x.T @ x + penalty * np.eye(D), x.T @ y))
    return np.stack(rows)


@pytest.mark.parametrize("solve", ["recursive", "cholesky"])
def test_every_state_is_ridge_on_its_prefix(solve):
    stated = ridge_of_prefixes(D * NOISE)
    np.testing.assert_allclose(states(solve, penalty=D * NOISE), stated, atol=1e-11)


def test_control_with_a_gate_it_is_not():
    forgetful = states("cholesky", penalty=D * NOISE, gate=2.0)
    assert np.abs(forgetful - ridge_of_prefixes(D * NOISE)).max() > 1e-2


@pytest.mark.parametrize("penalty", [D * NOISE, 0.2])
def test_its_risk_is_the_curve_by_quadrature(penalty):
    rng, prompts = np.random.default_rng(1), 40_000
    x, w = rng.normal(size=(prompts, N, D)), rng.normal(size=(prompts, D)) / D**0.5
    y = np.einsum("bnd,bd->bn", x, w) + NOISE**0.5 * rng.normal(size=(prompts, N))
    curve = learning_curves.ridge(N, D, NOISE, penalty)
    for t in (1, 2, 3, 6):
        moment = np.swapaxes(x[:, :t], 1, 2) @ x[:, :t] + penalty * np.eye(D)
        towards = np.einsum("bnd,bn->bd", x[:, :t], y[:, :t])
        errors = ((np.linalg.solve(moment, towards[..., None])[..., 0] - w) ** 2).sum(1)
        assert abs(errors.mean() - curve[t]) < 4 * errors.std() / prompts**0.5


def test_no_penalty_has_less_risk_than_that_of_the_bayes_rule():
    best = learning_curves.ridge(N, D, NOISE)
    for factor in (0.3, 0.8, 1.3, 4.0):
        assert (learning_curves.ridge(N, D, NOISE, factor * D * NOISE)[1:] > best[1:]).all()


def test_the_curve_ends_where_descent_with_many_steps_does():
    many = depth.best_descent_at(N, D, NOISE, 80)[-1]
    np.testing.assert_allclose(learning_curves.ridge(N, D, NOISE)[-1], many, rtol=1e-9)
