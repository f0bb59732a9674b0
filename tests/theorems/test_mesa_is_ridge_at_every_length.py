"""A mesa layer with penalty dσ² is the Bayes rule after every demonstration.

Open gates, steps of 1. docs/theory, "Learning curve of ridge regression".
"""

import functools

import numpy as np
import pytest

from draws import draw_prompt, jit_numpy, seeds, z_score
from lsa_lab.models import recurrent
from lsa_lab.prompts import tokens
from lsa_lab.theory import depth, learning_curves
from population import mesa_layer

N, D, NOISE = 6, 3, 0.4
shapes = pytest.mark.parametrize(("n", "d"), [(6, 3), (1, 1)])


@functools.partial(jit_numpy, static_argnames="solve")
def states(prompt, gate=np.inf, solve="cholesky"):  # [n, d]
    d = prompt.x.shape[1]
    params, config = mesa_layer(d, d * NOISE, gate, solve=solve)
    return recurrent.states(params, tokens(prompt), config)[0, 0, :-1, :, 0]


def ridge_on_prefixes(prompt):  # [n, d]
    (n, d), rows = prompt.x.shape, []
    for t in range(1, n + 1):
        x, y = prompt.x[:t], prompt.y[:t]
        rows.append(np.linalg.solve(x.T @ x + d * NOISE * np.eye(d), x.T @ y))
    return np.stack(rows)


@pytest.mark.parametrize("solve", ["recursive", "cholesky"])
@shapes
@seeds
def test_every_state_is_ridge_on_its_prefix(n, d, solve, seed):
    prompt = draw_prompt(np.random.default_rng(seed), n, d)
    np.testing.assert_allclose(states(prompt, solve=solve), ridge_on_prefixes(prompt), atol=1e-11)


def test_control_with_a_gate_it_is_not():
    prompt = draw_prompt(np.random.default_rng(0), N, D)
    assert np.abs(states(prompt, 2.0) - ridge_on_prefixes(prompt)).max() > 1e-2


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
        assert abs(z_score(errors - curve[t])) < 4


def test_no_other_penalty_has_less_risk_and_descent_with_many_steps_ends_there():
    best = learning_curves.ridge(N, D, NOISE)
    for factor in (0.3, 0.8, 1.3, 4.0):
        assert (learning_curves.ridge(N, D, NOISE, factor * D * NOISE)[1:] > best[1:]).all()
    np.testing.assert_allclose(best[-1], depth.best_descent_at(N, D, NOISE, 80)[-1], rtol=1e-9)
