"""The median log ratio of pairs turned by their first layer is at most the median |log ratio|.

Sides: ``disparity.summarise``, which turns each pair so that it starts at or above 0; the median of
the sizes, which turns none. They agree at the first layer, so the lead never grows by more than the
disparity does, and falls where layers only reshuffle. Derived here; docs/theory, "The amplification
theorem".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds
from lsa_lab.analyses import disparity

B, L = 64, 5
summary = jax.jit(disparity.summarise)


def draw(seed):  # [B, L]
    """Log ratios of pairs, heavy-tailed, some of which keep their order."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, 1)) + rng.standard_t(3, size=(B, L))


def lead(rows):
    return np.asarray(summary(jnp.asarray(rows)).median)


def sizes(rows):
    return np.median(np.abs(rows), axis=0)


@seeds
def test_the_lead_starts_as_the_disparity_and_is_never_above_it(seed):
    rows = draw(seed)
    assert abs(lead(rows)[0] - sizes(rows)[0]) < 1e-12
    assert np.all(lead(rows) <= sizes(rows) + 1e-12)


@seeds
def test_layers_that_reshuffle_lower_the_lead_and_leave_the_disparity(seed):
    pair = draw(seed)[:, :2]
    rows = np.concatenate([pair, pair[:, ::-1]])  # each layer as often first as the other
    assert abs(np.diff(sizes(rows))[0]) < 1e-12
    assert np.diff(lead(rows))[0] < 0


def test_control_turned_by_the_last_layer_the_same_pairs_rise():
    pair = draw(0)[:, :2]
    rows = np.concatenate([pair, pair[:, ::-1]])
    turned = np.median(rows * np.sign(rows[:, -1:]), axis=0)
    assert np.diff(turned)[0] > 0
    assert sizes(rows)[0] - turned[0] > 1e-2
