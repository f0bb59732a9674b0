"""Truncating W_O, its heads stacked, lowers |G_t| of a layer of several heads (derived here).

    G_t = Σ_h W_O^h W_V^h S W_{K,h}ᵀ W_Q^h = [W_O^1 ... W_O^H] (what the heads read),

so that the projection U_r U_rᵀ stands at its outer end, whatever the layer. W_V under a W_O stands
inside, and so do the outputs of one head beside another: the row on W_V of docs/theory,
"Norms under truncation", has no W_O.

Sides: ``clip`` of a transformer's layer; the norm of the sum by its definition.
"""

import numpy as np
import pytest

from draws import jit_numpy, seed_and
from lsa_lab.analyses import clipping
from lsa_lab.models import transformer

SHAPE = (2, 3, 6)  # H, k, e
truncate = jit_numpy(clipping.truncate)
clip = jit_numpy(lambda params, name, rate: clipping.clip(params, 0, name, rate), static_argnums=1)


def draw(seed, shape):
    """One layer, and the moment of the tokens that reach it."""
    num_heads, k, e = shape
    rng = np.random.default_rng(seed)
    w_q, w_k, w_v = rng.normal(size=(3, 1, num_heads, k, e))
    tokens = rng.normal(size=(8, e))
    params = transformer.Params(w_q, w_k, w_v, rng.normal(size=(1, num_heads, e, k)))
    return params, tokens.T @ tokens


def size(params, moment):
    w_q, w_k, w_v, w_o = (w[0] for w in (params.w_q, params.w_k, params.w_v, params.w_o))
    update = sum(w_o[h] @ w_v[h] @ moment @ w_k[h].T @ w_q[h] for h in range(len(w_q)))
    return np.linalg.norm(update)


def growth(seed, shape, name, rate, head=None):
    """|G| with one matrix truncated over |G|, minus one."""
    params, moment = draw(seed, shape)
    if head is None:
        clipped = clip(params, name, rate)
    else:
        heads = getattr(params, name).copy()
        heads[0, head] = truncate(heads[0, head], rate)
        clipped = params.replace(**{name: heads})
    return size(clipped, moment) / size(params, moment) - 1


@seed_and(rate=(0, 0.999))
def test_the_update_shrinks_with_the_stacked_outputs(seed, rate):
    assert growth(seed, SHAPE, "w_o", rate) < 1e-12


@pytest.mark.parametrize(("name", "head"), [("w_v", None), ("w_o", 0), ("w_k", None)])
def test_control_other_matrices_are_found_to_let_it_grow(name, head):
    assert max(growth(seed, SHAPE, name, 0.5, head) for seed in range(30)) > 0.01
