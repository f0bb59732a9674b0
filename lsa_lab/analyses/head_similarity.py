"""Which heads are alike: with those of a construction, with those of another seed.

A head adds W_O W_V e_i (W_K e_i · W_Q e_t) to token t. What it is as a function is therefore the
pair (key_query, written) = (W_Kᵀ W_Q, W_O W_V), each up to a scale and a sign; and where nothing
ties the stream's axes down, up to a rotation of what it writes. Heads come in no order: compare
all with all, then ``match``.
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.models import transformer_weights


class HeadMaps(flax.struct.PyTreeNode):
    """Heads as maps of tokens [x, y]: what asks for what, and what is written of it."""

    key_query: Array  # [H, e, e]
    written: Array  # [H, D, e]


def first_layer_maps(
    params: transformer_weights.Params, config: transformer_weights.Config
) -> HeadMaps:
    """The heads of layer 1 as maps of tokens, the read-in included.

    Exact without a norm. Deeper layers read streams of their own: compare their attention.
    """
    if config.norm:
        raise ValueError(
            "config.norm is True: the first layer's heads read normed tokens, which no matrix "
            "makes of the prompt's; compare attention with attention_similarity"
        )
    present = config.head_counts[0]
    w_q, w_k, w_v, w_o = (
        getattr(params, name)[0, :present] for name in ("w_q", "w_k", "w_v", "w_o")
    )
    key_query, written = w_k.swapaxes(1, 2) @ w_q, w_o @ w_v
    if params.read_in is not None:
        key_query = params.read_in.T @ key_query @ params.read_in
        written = written @ params.read_in
    return HeadMaps(key_query, written)


def similarity(first: HeadMaps, second: HeadMaps) -> Array:  # [H, G]
    """|cos(K_h, K_g)| max_O cos(O V_h, V_g) over rotations O of what is written, in [0, 1].

    K is key_query, V written, and the maximum the nuclear norm |V_h V_gᵀ|_* / (|V_h||V_g|). For
    the construction's head of coordinate j, K = e_j e_jᵀ and V reads the label alone, this is
    |K_jj|/|K| times the share of V in the label's column. A head that is zero is like no other.
    """
    e = first.key_query.shape[-1]
    for maps in (first, second):
        heads = maps.key_query.shape[0]
        chex.assert_shape(maps.key_query, (heads, e, e), custom_message="key_query is [H, e, e]")
        chex.assert_shape(maps.written, (heads, None, e), custom_message="written is [H, D, e]")
    asks = jnp.abs(_cosines(first.key_query, second.key_query))
    # |V_h V_gᵀ|_* depends on the triangles R of V = QR alone, which are [e, e] whatever the width.
    triangles = [_triangles(maps.written) for maps in (first, second)]
    products = jnp.einsum("hia,gja->hgij", *triangles)
    nuclear = jnp.linalg.svd(products, compute_uv=False).sum(-1)
    sizes = jnp.outer(*(jnp.linalg.norm(triangle, axis=(1, 2)) for triangle in triangles))
    return asks * jnp.where(sizes > 0, nuclear / jnp.where(sizes > 0, sizes, 1), 0)


def attention_similarity(first: Array, second: Array) -> Array:  # [B, H, T, T] x 2 -> [H, G]
    """The correlation, over prompts and pairs of tokens, of two models' attention patterns.

    Both models on the same prompts, one layer each (``transformer.attention``); works for any
    kernel and depth. A pattern that never varies correlates with none.
    """
    chex.assert_rank([first, second], 4, custom_message="attention is [B, H, T, T], of one layer")
    rows = [a.swapaxes(0, 1).reshape(a.shape[1], -1) for a in (first, second)]
    chex.assert_equal_shape_suffix(
        rows, 1, custom_message="both models must have read the same prompts"
    )
    return _cosines(*(row - row.mean(1, keepdims=True) for row in rows))


def match(similarity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:  # [H, G] -> [m], [m]
    """Pairs (h, g), m = min(H, G) of them, that make the sum of similarities largest.

    The assignment problem, solved by scipy (Crouse 2016); h ascends.
    """
    from scipy.optimize import linear_sum_assignment

    similarity = np.asarray(similarity)
    if similarity.ndim != 2 or not np.isfinite(similarity).all():
        raise ValueError(
            f"similarity has shape {similarity.shape} and {np.isfinite(similarity).sum()} finite "
            "entries: it is [H, G], all finite, one pair of models at a time"
        )
    return linear_sum_assignment(similarity, maximize=True)


def _cosines(first: Array, second: Array) -> Array:  # [H, ...], [G, ...] -> [H, G]
    rows = [a.reshape(a.shape[0], -1) for a in (first, second)]
    sizes = jnp.outer(*(jnp.linalg.norm(row, axis=1) for row in rows))
    return jnp.where(sizes > 0, rows[0] @ rows[1].T / jnp.where(sizes > 0, sizes, 1), 0)


def _triangles(matrices: Array) -> Array:  # [H, D, e] -> [H, min(D, e), e]
    return jax.vmap(lambda matrix: jnp.linalg.qr(matrix, mode="r"))(matrices)
