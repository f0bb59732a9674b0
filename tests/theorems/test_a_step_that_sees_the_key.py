"""A step that sees |x_t|² learns by a recursion over χ²_d, and is the Bayes rule at first.

docs/theory, "A step that sees the key". Sides: simulation of the rule, and of its first step the
Bayes rule; the recursion by quadrature. Hypotheses: Gaussian covariates and tasks.
"""

import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import learning_curves

implicit, delta_rule = (
    jit_numpy(curve, static_argnums=(0, 1))
    for curve in (learning_curves.implicit, learning_curves.delta_rule)
)


def simulated(n, d, noise_var, steps_see_the_key=True, prompts=20_000):  # [n+1], [n+1]
    rng = np.random.default_rng(0)
    w = rng.normal(size=(prompts, d)) / d**0.5
    error, curve = -w, implicit(n, d, noise_var)
    means, deviations = [(error**2).sum(1).mean()], [(error**2).sum(1).std()]
    for r in curve[:-1]:
        x = rng.normal(size=(prompts, d))
        noise = noise_var**0.5 * rng.normal(size=prompts)
        square = (x**2).sum(1) if steps_see_the_key else d + 2
        step = r / (square * r + d * noise_var)
        error = error + (step * (noise - (error * x).sum(1)))[:, None] * x
        means.append((error**2).sum(1).mean())
        deviations.append((error**2).sum(1).std())
    return np.array(means), np.array(deviations) / prompts**0.5


@pytest.mark.parametrize(("n", "d", "noise_var"), [(8, 4, 0.1), (6, 3, 1.0)])
def test_the_rule_follows_the_recursion(n, d, noise_var):
    means, errors = simulated(n, d, noise_var)
    assert (np.abs(means - implicit(n, d, noise_var)) < 4 * errors).all()


def test_control_with_a_step_that_does_not_see_the_key_it_does_not():
    means, errors = simulated(8, 4, 0.1, steps_see_the_key=False)
    assert np.abs(means - implicit(8, 4, 0.1))[-1] > 10 * errors[-1]


@pytest.mark.parametrize("d", [1, 4, 9])
def test_after_one_demonstration_it_is_the_bayes_rule_and_then_above_it(d):
    step, bayes = implicit(6, d, 0.3), learning_curves.ridge(6, d, 0.3)
    np.testing.assert_allclose(step[:2], bayes[:2], rtol=1e-9)
    assert (step[2:] > bayes[2:]).all()
    assert (step[1:] < delta_rule(6, d, 0.3)[1:]).all()
