"""Softmax with one visible key weighs it 1: all demonstrations have the same flow, at any depth.

∂q_L/∂d = Π_l (I + V_l) - I with V_l = Σ_h W_O W_V holds no demonstration and no query: the ratio of
two flows is 1 in every layer. Derived here; docs/theory, "Softmax reads one key".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models import transformer

L, E, H = 3, 4, 2


@partial(jit_numpy, static_argnames="config")
def network_flow(params, tokens, config):  # [L, e, e], ∂q_l/∂d of the first token after every layer
    def path(d):
        rows = jnp.concatenate([d[None], tokens[1:]])
        return transformer.forward(params, rows, config).stream[1:, -1]

    return jax.jacfwd(path)(tokens[0])


def errors(seed, num_tokens=2, **choices):
    """Flows of two demonstrations against each other, and one against the product of layers."""
    rng, config = np.random.default_rng(seed), transformer.Config(E, L, H, E, **choices)
    w_q, w_k, w_v, w_o = 0.5 * rng.normal(size=(4, L, H, E, E))
    tokens, product, stated = rng.normal(size=(num_tokens, E)), np.eye(E), []
    other = np.vstack([rng.normal(size=E), tokens[1:]])
    first, second = (
        network_flow(transformer.Params(w_q, w_k, w_v, w_o), t, config) for t in (tokens, other)
    )
    for layer in (w_o @ w_v).sum(1):
        product = product + layer @ product
        stated.append(product - np.eye(E))
    size = 1 + np.abs(stated).max()
    return np.abs(first - second).max() / size, np.abs(first - stated).max() / size


@seeds
def test_the_flow_depends_on_neither_the_demonstration_nor_the_query(seed):
    assert max(errors(seed)) < 1e-10


def test_control_a_second_key_or_a_linear_score_sees_the_demonstration():
    assert min(errors(0, keys="all")) > 1e-2
    assert min(errors(0, num_tokens=3)) > 1e-2
    assert min(errors(0, kernel="linear")) > 1e-2
