"""Softmax with one visible key weighs it 1: all demonstrations have the same flow, at any depth.

Sides: the transformer, differentiated by its one demonstration; ∂q_L/∂d = Π_l (I + V_l) - I with
V_l = Σ_h W_O W_V, in which no demonstration and no query stands. So the ratio of two flows is 1 in
every layer, and depth amplifies nothing. Derived here; docs/theory, "Softmax reads one key".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

SHAPE = (3, 4, 2)  # L, e, H


@partial(jit_numpy, static_argnames="config")
def network_flow(weights, tokens, config):  # [L, e, e]
    """∂q_l/∂d of the first token after every layer."""
    params = transformer.Params(*weights[:3], weights[3].swapaxes(2, 3))

    def path(d):
        rows = jnp.concatenate([d[None], tokens[1:]])
        return transformer.forward(params, rows, config).stream[1:, -1]

    return jax.jacfwd(path)(tokens[0])


def draw(seed, shape, num_tokens=2, **choices):
    """Two prompts that differ in their first demonstration, and the flow from it in each."""
    rng = np.random.default_rng(seed)
    num_layers, e, heads = shape
    weights = 0.5 * rng.normal(size=(4, num_layers, heads, e, e))
    config = transformer.Config(e, num_layers, heads, e, **choices)
    tokens = np.repeat(rng.normal(size=(1, num_tokens, e)), 2, axis=0)
    tokens[1, 0] = rng.normal(size=e)
    return weights, [network_flow(weights, t, config) for t in tokens]


def disagreement(*case, **choices):
    """The two flows against each other, and the first against the product of the layers."""
    weights, (first, second) = draw(*case, **choices)
    product, stated = np.eye(first.shape[-1]), []
    for values, outputs in zip(weights[2], weights[3], strict=True):
        written = sum(o.T @ v for v, o in zip(values, outputs, strict=True))
        product = product + written @ product
        stated.append(product - np.eye(len(product)))
    size = 1 + np.abs(stated).max()
    return np.abs(first - second).max() / size, np.abs(first - stated).max() / size


@seeds
def test_the_flow_knows_neither_the_demonstration_nor_the_query(seed):
    assert max(disagreement(seed, SHAPE)) < 1e-10


def test_control_a_second_key_or_a_linear_score_sees_the_demonstration():
    assert min(disagreement(0, SHAPE, keys="all")) > 1e-2
    assert min(disagreement(0, SHAPE, num_tokens=3)) > 1e-2
    assert min(disagreement(0, SHAPE, kernel="linear")) > 1e-2
