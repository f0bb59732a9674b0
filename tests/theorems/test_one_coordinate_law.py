"""Tokens of width 1 without a mask: R(L) = |d_1/d_2| ((1 - 2aL r_2²)/(1 - 2aL r_1²))^{3/2}, a = PK.

Many small layers approach it like Euler steps: those that pull back turn the order of two flows,
those that push amplify it. Derived here; docs/theory, "The one-coordinate law", "Layers turn the
order of flows".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seed_and
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

STEPS = 400  # of Runge and Kutta
PAIR, QUERY = np.array([1.5, 0.8]), 0.5
law = jit_numpy(amplification.one_coordinate_ratio)


def solve_ratio(gain, pair, query, depth, num_keys=2):
    """|∂q_L/∂d| of the first over the second, d' = a d (d² + q²), q' alike; by a complex step."""
    state, h = np.array([pair + 1e-30j, np.full(2, query + 0j)]), depth / STEPS

    def velocity(state):
        return gain * state * (state[:num_keys] ** 2).sum(0)

    for _ in range(STEPS):
        k1 = velocity(state)
        k2 = velocity(state + h / 2 * k1)
        k3 = velocity(state + h / 2 * k2)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(state + h * k3))
    return abs(np.divide(*state[1].imag))


def error(seed, strength, num_keys=2):
    """a, d_1 > d_2, q and L with 2aL r_1² = ``strength``: the first blows up at 1."""
    strength = strength if abs(strength) > 1e-3 else 1e-3  # at 0 nothing flows
    rng = np.random.default_rng(seed)
    pair, query = np.array([1.0, rng.uniform(0.3, 0.9)]), rng.uniform(0.3, 2)
    depth = rng.uniform(5, 50)
    case = strength / (2 * depth * (1 + query**2)), pair, query
    return abs(solve_ratio(*case, depth, num_keys) / law(*case, np.array([depth]))[0] - 1)


@seed_and(strength=(-3.0, 0.8))
def test_the_flows_of_the_limit_of_small_layers_have_the_stated_ratio(seed, strength):
    assert error(seed, strength) < 1e-8
    assert error(0, 0.8, num_keys=1) > 0.1  # Control: a mask


@partial(jit_numpy, static_argnames=("num_layers", "keys"))
def network_ratio(gain, num_layers, keys="all"):  # [L], |∂q_l/∂d| of the first over the second
    weights = jnp.stack([1.0, gain])[:, None, None, None, None]  # K = 1, P = gain
    params = linear_attention.Params(*jnp.broadcast_to(weights, (2, num_layers, 1, 1, 1)))

    def path(d):
        rows = jnp.stack([d, jnp.asarray(QUERY)])[:, None]
        return linear_attention.forward(params, rows, keys=keys).stream[1:, -1, 0]

    return jnp.abs(jnp.divide(*jax.vmap(jax.jacfwd(path))(jnp.asarray(PAIR))))


@pytest.mark.parametrize("strength", [-3.0, 0.5])
def test_layers_approach_the_law_as_fast_as_euler_steps_do_and_control_masked_ones_do_not(strength):
    """What is left of the distance from the law when 200 layers become 400 of half the gain."""
    total = strength / (2 * np.hypot(PAIR[0], QUERY) ** 2)  # aL; the first blows up at 1
    limit = law(total, PAIR, QUERY, np.ones(1))[0]
    for keys, low, high in (("all", 0.45, 0.55), ("demonstrations", 0.9, np.inf)):
        coarse, fine = (network_ratio(total / m, m, keys)[-1] - limit for m in (200, 400))
        assert low < fine / coarse < high


def test_layers_that_pull_back_reverse_the_order_and_layers_that_push_amplify():
    for gain, direction in ((-0.0025, -1.0), (0.0005, 1.0)):
        flows, limit = network_ratio(gain, 200), law(gain, PAIR, QUERY, np.arange(1.0, 201))
        assert np.all(direction * np.diff([flows, limit]) > 0)
        assert np.abs(flows / limit - 1).max() < 0.05
        assert (flows[-1] < 1 < flows[0]) == (direction < 0)
    first, second = np.hypot(PAIR, QUERY)
    last = law(-0.01, PAIR, QUERY, np.array([1e12]))[0]
    assert abs(last - PAIR[0] / PAIR[1] * (second / first) ** 3) < 1e-8
