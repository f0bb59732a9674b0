"""The experiment on relevance and novelty: its factors and its classes, on small numbers."""

import jax
import numpy as np

from experiments.flow.relevance_and_novelty import cells, worth
from lsa_lab.prompts import Prompt


def prompts(seed, count, n=6, d=3):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(count, n, d)), rng.normal(size=(count, n))
    return Prompt(x, y, rng.normal(size=(count, d)), rng.normal(size=count))


def test_the_bayes_rule_moves_by_flow_times_surprise_and_gains_its_square():
    factors = jax.jit(jax.vmap(lambda prompt: worth.factors(prompt, 0.25)))(prompts(0, 20))
    move = factors["flow"] * factors["surprise"]
    gain = worth.gains(factors["without"], factors["with"], factors["with"])
    np.testing.assert_allclose(gain, move**2, atol=1e-12)


def test_a_map_that_rises_in_both_directions_has_rank_correlation_one():
    rising = np.arange(3)[:, None] + 2.0 * np.arange(3)
    assert cells.rise(rising) == 1
    assert cells.rise(rising[::-1]) == -1


def test_the_share_between_classes_is_that_of_their_means():
    values, classes = np.array([0.0, 2.0, 4.0, 6.0]), np.array([0, 0, 1, 1])
    assert abs(cells.between(values, classes) - 4 / 5) < 1e-12  # variance of 1, 1, 5, 5 over 5
