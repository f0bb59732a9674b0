"""How well a layer of linear attention determines its heads, if their keys and values are narrow.

Heads of rank k cannot be mixed without becoming wider, and the layer's tensor M is a sum of their
tensors M_h, each from the set of tensors that one head of rank k can write (docs/theory, "Narrow
heads are identifiable"; what M is: ``models.head_gauge``).
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_at_least, is_concrete


def condition_number(w_pv: Array, w_kq: Array, width: int) -> Array:  # [H, a, b], [H, b, c] -> []
    """How much all M_h together can move, at worst, for a small movement of their sum M.

    1/σ_min of the tangent spaces of all heads side by side, each in an orthonormal basis: at least
    1, the same for all ways to write the heads, and infinite where they can move and leave M (the
    condition number of a join decomposition, Breiding & Vannieuwenhoven 1611.08117). It sees near
    heads only: that no others have the same M is another question. w_pv and w_kq of one layer, of
    rank ``width``; keep of tokens what prompts fill, [b] and [c], the slots that are read, [a], and
    the heads that write.
    """
    chex.assert_rank([w_pv, w_kq], 3, custom_message="one layer: w_pv [H, a, b], w_kq [H, b, c]")
    check_at_least(width, "width")
    (num_heads, a, b), c = w_pv.shape, w_kq.shape[2]
    chex.assert_shape(w_kq, (num_heads, b, c))
    ranks = min(width, a, b), min(width, b, c)
    free = ranks[0] * (a + b - ranks[0]) + ranks[1] * (b + c - ranks[1])
    free -= 1  # a scale between both
    upper = jnp.triu_indices(b)
    once = jnp.where(upper[0] == upper[1], 1.0, 2**0.5).astype(w_pv.dtype)

    def tangents(pv: Array, kq: Array) -> Array:  # [a b(b+1)/2 c, free]
        moves_pv, moves_kq = _tangents(pv, ranks[0]), _tangents(kq, ranks[1])
        written = jnp.concatenate(
            [jnp.einsum("mab,gc->mabgc", moves_pv, kq), jnp.einsum("ab,mgc->mabgc", pv, moves_kq)]
        )
        symmetric = (written + written.swapaxes(2, 3)) / 2
        rows = symmetric[:, :, *upper] * once[None, None, :, None]
        left, values, _ = jnp.linalg.svd(rows.reshape(len(rows), -1).T, full_matrices=False)
        # Where a head's own tensor leaves more of its weights free, there are fewer directions.
        present = values[:free] > 1e-9 * values[0]
        return jnp.where(present[None], left[:, :free], jnp.nan)

    for name, matrices, rank in (("w_pv", w_pv, ranks[0]), ("w_kq", w_kq, ranks[1])):
        _check_rank(name, matrices, rank)
    spaces = jax.vmap(tangents)(w_pv, w_kq)
    together = jnp.moveaxis(spaces, 0, 1).reshape(spaces.shape[1], -1)
    if together.shape[0] < together.shape[1]:  # more directions than numbers in M
        return jnp.full((), jnp.inf, together.dtype)
    return 1 / jnp.linalg.svd(together, compute_uv=False)[-1]


def _check_rank(name: str, matrices: Array, rank: int) -> None:
    """Raise where heads that can be read are not of this rank: their tangents are others."""
    if not is_concrete(matrices):
        return
    values = np.linalg.svd(np.asarray(matrices, float), compute_uv=False)  # [H, min(a, b)]
    present = (values > 1e-6 * values[:, :1]).sum(1)
    if (present != rank).any():
        head = int(np.argmax(present != rank))
        raise ValueError(f"{name} of head {head} has rank {present[head]}, and width says {rank}")


def _tangents(matrix: Array, rank: int) -> Array:  # [a, b] -> [rank (a + b), a, b]
    """Directions in which a matrix stays of its rank: U X + Y Vᵀ, more of them than needed."""
    left, _, right = jnp.linalg.svd(matrix, full_matrices=False)
    a, b = matrix.shape
    identity = jnp.eye(a, dtype=matrix.dtype), jnp.eye(b, dtype=matrix.dtype)
    rows = jnp.einsum("ak,nb->knab", left[:, :rank], identity[1])
    columns = jnp.einsum("na,kb->knab", identity[0], right[:rank])
    return jnp.concatenate([rows.reshape(-1, a, b), columns.reshape(-1, a, b)])
