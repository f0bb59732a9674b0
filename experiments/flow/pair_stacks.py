"""Random stacks of linear attention of a given gain, in which pairs of demonstrations flow.

The gain of a stack is the size of what a layer writes to a token, over that of the token.
"""

from functools import partial

import jax
import numpy as np

from lsa_lab.models import linear_attention

UNMASKED = partial(linear_attention.forward, keys="all")  # as in A1: the query is a key
_MATRICES = ("w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def random_linear(rng, runs, depth, d):  # -> Params [R, L, ...]
    """Random untied stacks of gain 1, for tokens whose squared length is about 2d."""
    weights = rng.normal(size=(2, runs, depth, 1, d + 1, d + 1))
    return linear_attention.Params(*weights / (2 * d * (d + 1) ** 0.5) ** 0.5)


def amplify(params, gain):
    """Matrices times √gain, of merged or of factored heads."""
    matrices = {name: getattr(params, name, None) for name in _MATRICES}
    return params.replace(**{k: gain**0.5 * v for k, v in matrices.items() if v is not None})


def tie(params):
    """The first layer again and again."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf[:, :1], leaf.shape), params)


def freeze(params):
    """The same stacks with skew w_kq: d·K d = 0, so that a demonstration alone and masked stays."""
    return params.replace(w_kq=(params.w_kq - params.w_kq.swapaxes(-1, -2)) / 2)
