"""A truncated matrix kept as its two factors, which a forward applies without forming it."""

import flax.struct
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.clipping.ranks import kept_rank, svd
from lsa_lab.models import linear_attention, transformer


@flax.struct.dataclass
class Factored:
    """W = (U s) Vᵀ with the r largest singular values."""

    left: Array  # [..., p, r]  U s
    right: Array  # [..., r, q]  Vᵀ

    @property
    def num_parameters(self) -> int:
        """r (p + q) for each matrix, all of them stored: more than p q unless r < p q / (p + q)."""
        return self.left.size + self.right.size

    @property
    def dense(self) -> Array:  # [..., p, q]
        return self.left @ self.right


def factor(matrix: Array, rate: float) -> Factored:
    """``truncate`` in factored form; the rate fixes a shape, so it is a number."""
    left, values, right = svd(matrix)
    rank = kept_rank(values.shape[-1], rate)
    return Factored((left * values[..., None, :])[..., :rank], right[..., :rank, :])


def apply(factored: Factored, rows: Array) -> Array:  # [T, q] -> [T, p]
    """W u for each row u, in r (p + q) products where W itself takes p q."""
    return (rows @ factored.right.T) @ factored.left.T


def as_heads(params: linear_attention.Params, rate: float) -> transformer.Params:
    """Linear attention with both merged weights cut at ``rate``, as heads of key width r.

    w_kq = Σ_{i≤r} s_i u_i v_iᵀ is W_Kᵀ W_Q with W_K = √s Uᵀ and W_Q = √s Vᵀ, and w_pv = W_O W_V
    likewise: 4 r e numbers in each head. It runs by ``transformer.forward`` under
    Config(e, L, H, r, kernel="linear"), r = kept_rank(e, rate).
    """
    scores, writes = factor(params.w_kq, rate), factor(params.w_pv, rate)
    w_k, w_q = _balanced(scores)
    w_o, w_v = _balanced(writes)
    return transformer.Params(w_q=w_q, w_k=w_k.swapaxes(-1, -2), w_v=w_v, w_o=w_o)


def _balanced(factored: Factored) -> tuple[Array, Array]:  # [..., p, r], [..., r, q]
    """Both factors scaled by √s; a singular value is the length of a column of U s."""
    roots = jnp.sqrt(jnp.linalg.norm(factored.left, axis=-2))
    safe = jnp.where(roots > 0, roots, 1)
    return factored.left / safe[..., None, :], factored.right * roots[..., None]
