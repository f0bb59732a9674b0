"""Layers of width 1 that pull back turn the order of two flows; layers that push amplify it.

Sides: linear attention, without a mask, differentiated; the law R(L) of the limit of many small
layers, which they approach like Euler steps. Derived here; docs/theory, "Layers turn the order of
flows".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

PAIR, QUERY = np.array([1.5, 0.8]), 0.5
ratio = jit_numpy(amplification.one_coordinate_ratio)


@partial(jit_numpy, static_argnames=("num_layers", "keys"))
def network_ratio(gain, demonstrations, query, num_layers, keys="all"):  # [L]
    """|∂q_l/∂d| of the first demonstration over the second's; P = gain, K = 1."""
    shape = (num_layers, 1, 1, 1)
    params = linear_attention.Params(jnp.ones(shape), jnp.full(shape, gain))

    def path(d):
        rows = jnp.stack([d, query])[:, None]
        return linear_attention.forward(params, rows, keys=keys).stream[1:, -1, 0]

    flows = jax.vmap(jax.jacfwd(path))(demonstrations)
    return jnp.abs(flows[0] / flows[1])


def law(gain, demonstrations, query, depths):
    return ratio(gain, demonstrations, query, np.asarray(depths, float))


def share_left(strength, keys="all"):
    """What is left of the distance from the law when 200 layers become 400 of half the gain."""
    total = strength / (2 * np.hypot(PAIR[0], QUERY) ** 2)  # aL; the first blows up at 1
    ends = [network_ratio(total / m, PAIR, QUERY, m, keys)[-1] for m in (200, 400)]
    coarse, fine = np.array(ends) - law(total, PAIR, QUERY, [1.0])[0]
    return fine / coarse


def test_layers_approach_the_law_as_fast_as_euler_steps_do():
    for strength in (-3.0, 0.5):
        assert 0.45 < share_left(strength) < 0.55


def test_control_masked_layers_approach_something_else():
    for strength in (-3.0, 0.5):
        assert share_left(strength, keys="demonstrations") > 0.9


def test_layers_that_pull_back_reverse_the_order_and_layers_that_push_amplify():
    for gain, direction in ((-0.01, -1.0), (0.002, 1.0)):
        flows = network_ratio(gain, PAIR, QUERY, 50)
        limit = law(gain, PAIR, QUERY, np.arange(1, 51))
        assert np.all(direction * np.diff([flows, limit]) > 0)
        assert np.abs(flows / limit - 1).max() < 0.05
        assert (flows[-1] < 1 < flows[0]) == (direction < 0)
    first, second = np.hypot(PAIR, QUERY)
    last = law(-0.01, PAIR, QUERY, [1e12])[0]
    assert abs(last - PAIR[0] / PAIR[1] * (second / first) ** 3) < 1e-8
