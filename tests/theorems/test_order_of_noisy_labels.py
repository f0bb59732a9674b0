"""A delta rule with its best steps reads the noisiest labels first; ridge sees no order.

Gaussian covariates. docs/theory, "The noisiest label first".
"""

import functools
import itertools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np

from draws import draw_prompt, jit_numpy, seeds, z_score
from lsa_lab.estimators import ridge
from lsa_lab.theory import learning_curves

D, PROMPTS = 3, 200_000
ORDERS = list(itertools.permutations((3.0, 0.5, 0.05)))  # the noisiest first, and last
curve_ends = jit_numpy(jax.vmap(lambda noise: learning_curves.delta_rule(len(noise), D, noise)[-1]))
fit_ridge = jit_numpy(ridge)


@functools.cache
def simulated_errors(noise, schedule=None):
    """|w - ŵ|² [B] after labels of this noise, and the steps: without a schedule each is the least
    of a quadratic form, the draw's own, in the step."""
    rng, steps = np.random.default_rng(0), []
    e = rng.standard_normal((PROMPTS, D)) / D**0.5
    for t, noise_var in enumerate(noise):
        x, unit = rng.standard_normal((PROMPTS, D)), rng.standard_normal(PROMPTS)
        signal = (x * e).sum(1)
        surprise = signal + noise_var**0.5 * unit
        best = (surprise * signal).mean() / (surprise**2 * (x**2).sum(1)).mean()
        steps.append(schedule[t] if schedule else best)
        e = e - steps[-1] * surprise[:, None] * x
    return (e**2).sum(1), tuple(steps)


def lead(first, last, schedule=None):
    """How many standard errors the first order's risk is below the other's, on the same draw."""
    return z_score(simulated_errors(last, schedule)[0] - simulated_errors(first, schedule)[0])


@hypothesis.settings(max_examples=5)
@hypothesis.given(noise=st.lists(st.floats(1e-3, 10.0), min_size=4, max_size=4))
def test_no_order_learns_more_than_the_noisiest_first(noise):
    least = curve_ends(np.array(list(itertools.permutations(noise)))).min()
    errors, _ = simulated_errors(tuple(sorted(noise, reverse=True)))
    assert abs(z_score(errors - least)) < 4


def test_drawn_prompts_are_learnt_best_in_the_order_of_their_noise():
    assert min(lead(ORDERS[0], order) for order in ORDERS[1:]) > 3
    # Control: with the steps of another order the noisiest come last.
    assert lead(ORDERS[0], ORDERS[-1], simulated_errors(ORDERS[0])[1]) > 30
    assert lead(ORDERS[0], ORDERS[-1], simulated_errors(ORDERS[-1])[1]) < -30


def test_a_swap_of_neighbours_gains_what_is_stated():
    """The gain of precision is cR/((cR + A)(cR + B)) (R_B/(cR_B + A) - R_A/(cR_A + B)), c = d + 1,
    A < B the two dσ², R the risk before them, here that of predicting 0."""
    c, a, b = D + 1, D * 0.2, D * 1.5
    after_a, after_b = 1 / (1 + 1 / (c + a)), 1 / (1 + 1 / (c + b))
    clean_first, noisy_first = curve_ends(np.array([[0.2, 1.5], [1.5, 0.2]]))
    stated = c / ((c + a) * (c + b)) * (after_b / (c * after_b + a) - after_a / (c * after_a + b))
    np.testing.assert_allclose(1 / noisy_first - 1 / clean_first, stated, rtol=1e-10)
    assert stated > 0


@seeds
def test_ridge_sees_no_order(seed):
    rng = np.random.default_rng(seed)
    prompt, order = draw_prompt(rng, 5, D), rng.permutation(5)
    permuted = fit_ridge(prompt.replace(x=prompt.x[order], y=prompt.y[order]), 0.3)
    np.testing.assert_allclose(fit_ridge(prompt, 0.3), permuted, rtol=1e-9, atol=1e-12)
