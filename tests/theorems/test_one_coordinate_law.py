"""Tokens of width 1 without a mask: R(L) = |d_1/d_2| ((1 - 2aL r_2²)/(1 - 2aL r_1²))^{3/2}, a = PK.

Sides: the ODE of which layers of linear attention are steps, integrated together with its
derivative; the closed form. Derived here; docs/theory, "The one-coordinate law".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import seed_and
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

STEPS = 400  # of Runge and Kutta
law = jax.jit(amplification.one_coordinate_ratio)


@partial(jax.jit, static_argnames="keys")
def ode_ratio(gain, demonstrations, query, depth, keys="all"):  # []
    """|∂q_L/∂d| of the first over the second, where one layer writes the velocity of the tokens."""
    h = depth / STEPS
    layer = linear_attention.Params(jnp.ones((1, 1, 1, 1)), jnp.full((1, 1, 1, 1), gain))

    def velocity(rows):
        return linear_attention.forward(layer, rows, keys=keys).stream[1] - rows

    def rate(state):  # of the rows and of their derivative
        return jnp.stack(jax.jvp(velocity, (state[0],), (state[1],)))

    def step(_, state):
        k1 = rate(state)
        k2 = rate(state + h / 2 * k1)
        k3 = rate(state + h / 2 * k2)
        return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(state + h * k3))

    def flow(d):
        state = jnp.stack([jnp.stack([d, query]), jnp.array([1.0, 0.0])])[:, :, None]
        return jax.lax.fori_loop(0, STEPS, step, state)[1, 1, 0]

    flows = jax.vmap(flow)(demonstrations)
    return jnp.abs(flows[0] / flows[1])


def draw(seed, strength):
    """a, d_1 > d_2, q and L with 2aL r_1² = ``strength``: the first blows up at 1."""
    strength = strength if abs(strength) > 1e-3 else 1e-3  # at 0 nothing flows
    rng = np.random.default_rng(seed)
    demonstrations, query = np.array([1.0, rng.uniform(0.3, 0.9)]), rng.uniform(0.3, 2)
    depth = rng.uniform(5, 50)
    return strength / (2 * depth * (1 + query**2)), demonstrations, query, depth


def error(case, keys="all"):
    *of_tokens, depth = case
    return abs(ode_ratio(*case, keys=keys) / law(*of_tokens, np.array([depth]))[0] - 1)


@seed_and(strength=(-3.0, 0.8))
def test_the_flows_of_the_limit_of_small_layers_have_the_stated_ratio(seed, strength):
    assert error(draw(seed, strength)) < 1e-8


def test_control_a_mask_breaks_the_law():
    assert error(draw(0, 0.8), keys="demonstrations") > 0.1
