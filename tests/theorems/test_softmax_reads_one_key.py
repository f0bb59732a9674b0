"""Softmax with one visible key weighs it 1: all demonstrations have the same flow, at any depth.

∂q_L/∂d = Π_l (I + V_l) - I with V_l = Σ_h W_O W_V holds no demonstration and no query: the ratio of
two flows is 1 in every layer. Derived here; docs/theory, "Softmax reads one key".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_transformer, jit_numpy, seeds
from lsa_lab.models import transformer

L, E, H = 3, 4, 2


@partial(jit_numpy, static_argnames="config")
def network_flow(params, tokens, config):  # [L, e, e], ∂q_l/∂d of the first token after every layer
    def path(d):
        rows = jnp.concatenate([d[None], tokens[1:]])
        return transformer.forward(params, rows, config).stream[1:, -1]

    return jax.jacfwd(path)(tokens[0])


def errors(seed, num_tokens=2, **choices):
    """Flows of two demonstrations against the product of layers."""
    rng, config = np.random.default_rng(seed), transformer.Config(E, L, H, E, **choices)
    params, tokens = draw_transformer(rng, L, H, E, E, 0.5), rng.normal(size=(num_tokens, E))
    product, stated = np.eye(E), []
    for layer in (params.w_o @ params.w_v).sum(1):
        product = product + layer @ product
        stated.append(product - np.eye(E))
    other = np.vstack([rng.normal(size=E), tokens[1:]])
    flows = [network_flow(params, rows, config) for rows in (tokens, other)]
    return [np.abs(flow - stated).max() / (1 + np.abs(stated).max()) for flow in flows]


@seeds
def test_the_flow_depends_on_neither_the_demonstration_nor_the_query(seed):
    assert max(errors(seed)) < 1e-10
    # Control: a second key or a linear score sees the demonstration.
    for choices in (dict(keys="all"), dict(num_tokens=3), dict(kernel="linear")):
        assert min(errors(0, **choices)) > 1e-2
