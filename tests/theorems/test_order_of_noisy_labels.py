"""A delta rule with its best steps reads the noisiest labels first; ridge does not care.

docs/theory, "The noisiest label first". Sides: every order of the labels; the order by noise.
Hypotheses: Gaussian covariates, steps at their best for the order.
"""

import itertools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.theory import learning_curves

final = jax.jit(lambda noise: learning_curves.delta_rule(4, 3, noise)[-1])
every = jax.jit(jax.vmap(lambda noise: learning_curves.delta_rule(4, 3, noise)[-1]))
noises = st.lists(st.floats(1e-3, 10.0), min_size=4, max_size=4)


@hypothesis.given(noise=noises)
def test_no_order_learns_more_than_the_noisiest_first(noise):
    orders = jnp.asarray(list(itertools.permutations(noise)))
    best = final(jnp.asarray(sorted(noise, reverse=True)))
    assert best <= every(orders).min() * (1 + 1e-12)


def test_a_swap_of_neighbours_gains_what_is_stated():
    """The gain of precision is cR/((cR + A)(cR + B)) (R_B/(cR_B + A) - R_A/(cR_A + B)), c = d + 1,
    A < B the two dσ², R the risk before them, here that of predicting 0."""
    d, noise = 3, np.array([0.2, 1.5])
    c, (a, b) = d + 1, d * noise
    after_a, after_b = (1 / (1 + 1 / (c + each)) for each in (a, b))
    orders = (noise[::-1].copy(), noise)
    noisy_first, clean_first = (learning_curves.delta_rule(2, d, each)[-1] for each in orders)
    stated = c / ((c + a) * (c + b)) * (after_b / (c * after_b + a) - after_a / (c * after_a + b))
    np.testing.assert_allclose(1 / noisy_first - 1 / clean_first, stated, rtol=1e-10)
    assert stated > 0


def test_control_with_the_clean_first_less_is_learnt():
    noise = np.r_[np.full(10, 2.0), np.full(10, 0.01)]
    noisy, clean = (learning_curves.delta_rule(20, 8, n)[-1] for n in (noise, noise[::-1].copy()))
    np.testing.assert_allclose([noisy, clean], [0.2501, 0.2981], atol=5e-5)
