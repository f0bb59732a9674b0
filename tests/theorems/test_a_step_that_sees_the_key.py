"""A step that depends on |x_t|² learns by a recursion over χ²_d, and starts as the Bayes rule.

Gaussian covariates and tasks. docs/theory, "A step that sees the key".
"""

import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import learning_curves

implicit, delta_rule = (
    jit_numpy(curve, static_argnums=(0, 1))
    for curve in (learning_curves.implicit, learning_curves.delta_rule)
)


def z_scores(n, d, noise_var, steps_see_the_key=True, prompts=20_000):  # [n+1]
    """Simulated errors from the recursion, in standard errors."""
    rng, curve = np.random.default_rng(0), implicit(n, d, noise_var)
    error = rng.normal(size=(prompts, d)) / d**0.5
    squares = [(error**2).sum(1)]
    for r in curve[:-1]:
        x, noise = rng.normal(size=(prompts, d)), rng.normal(size=prompts)
        square = (x**2).sum(1) if steps_see_the_key else d + 2
        step = r / (square * r + d * noise_var)
        error = error + (step * (noise_var**0.5 * noise - (error * x).sum(1)))[:, None] * x
        squares.append((error**2).sum(1))
    return (np.mean(squares, 1) - curve) / np.std(squares, 1) * prompts**0.5


@pytest.mark.parametrize("case", [(8, 4, 0.1), (6, 3, 1.0), (5, 1, 0.3)])
def test_the_rule_follows_the_recursion(case):
    assert np.abs(z_scores(*case)).max() < 4


def test_control_a_step_that_does_not_see_the_key_leaves_it():
    assert abs(z_scores(8, 4, 0.1, steps_see_the_key=False)[-1]) > 10


@pytest.mark.parametrize("d", [1, 4, 9])
def test_after_one_demonstration_it_is_the_bayes_rule_and_then_above_it(d):
    step, bayes = implicit(6, d, 0.3), learning_curves.ridge(6, d, 0.3)
    np.testing.assert_allclose(step[:2], bayes[:2], rtol=1e-9)
    assert (step[2:] > bayes[2:]).all()
    assert (step[1:] < delta_rule(6, d, 0.3)[1:]).all()
