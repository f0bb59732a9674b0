"""A mesa layer with penalty dσ² is the Bayes rule after every demonstration.

Open gates, steps of 1. docs/theory, "Learning curve of ridge regression".
"""

import functools

import numpy as np
import pytest

from draws import draw_prompt, draw_regressions, jit_numpy, seeds, z_score
from lsa_lab.models import recurrent
from lsa_lab.prompts import tokens
from lsa_lab.theory import depth, learning_curves
from population import mesa_layer

N, D, NOISE = 6, 3, 0.4


@functools.partial(jit_numpy, static_argnames="solve")
def states(prompt, gate=np.inf, solve="cholesky"):  # [n, d]
    d = prompt.x.shape[1]
    params, config = mesa_layer(d, d * NOISE, gate, solve=solve)
    return recurrent.states(params, tokens(prompt), config)[0, 0, :-1, :, 0]


@pytest.mark.parametrize("solve", ["recursive", "cholesky"])
@pytest.mark.parametrize(("n", "d"), [(6, 3), (1, 1)])
@seeds
def test_every_state_is_ridge_on_its_prefix(n, d, solve, seed):
    prompt, rows = draw_prompt(np.random.default_rng(seed), n, d), []
    for t in range(1, n + 1):
        x, y = prompt.x[:t], prompt.y[:t]
        rows.append(np.linalg.solve(x.T @ x + d * NOISE * np.eye(d), x.T @ y))
    np.testing.assert_allclose(states(prompt, solve=solve), np.stack(rows), atol=1e-11)
    if seed == 0 and d == D:  # Control: a gate
        assert np.abs(states(prompt, 2.0, solve=solve) - np.stack(rows)).max() > 1e-2


@pytest.mark.parametrize("penalty", [D * NOISE, 0.2])
def test_its_risk_is_the_curve_by_quadrature(penalty):
    x, w, y = draw_regressions(np.random.default_rng(1), 40_000, N, D, NOISE)
    curve = learning_curves.ridge(N, D, NOISE, penalty)
    for t in (1, 2, 3, 6):
        moment = x[:, :t].swapaxes(1, 2) @ x[:, :t] + penalty * np.eye(D)
        towards = np.einsum("bnd,bn->bd", x[:, :t], y[:, :t])
        errors = ((np.linalg.solve(moment, towards[..., None])[..., 0] - w[:, 0]) ** 2).sum(1)
        assert abs(z_score(errors - curve[t])) < 4


def test_no_other_penalty_has_less_risk_and_descent_with_many_steps_ends_there():
    best = learning_curves.ridge(N, D, NOISE)
    for factor in (0.3, 0.8, 1.3, 4.0):
        assert (learning_curves.ridge(N, D, NOISE, factor * D * NOISE)[1:] > best[1:]).all()
    np.testing.assert_allclose(best[-1], depth.best_descent_at(N, D, NOISE, 80)[-1], rtol=1e-9)
