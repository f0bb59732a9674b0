"""Merged weights in the layout of Ahn et al. (2306.00297): one array, a P and a Q for each head."""

import chex
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.models.linear_attention import Params

_RANK = "allparam is [layer, head, 2, d, d]: entry 0 of the third axis is P, entry 1 is Q"


def ahn(allparam: ArrayLike, *, full: bool = False) -> Params:
    """The linear attention of ``allparam`` [L, H, 2, d, d], P = [..., 0, :, :], Q = [..., 1, :, :].

    Their code, one token z_t = [x_t, y_t] a row and the query's label 0, adds to token t

        (1/n) Σ_h Σ_{i ≤ n} (z_tᵀ Q̂_h z_i) P̂_h z_i,    P̂ = diag(P, 1),  Q̂ = diag(Q, 0),

    and its loss takes minus the query's last coordinate for the prediction. The sum leaves out the
    query, n counts demonstrations, and the sign is ours, so

        w_pv = P̂,    w_kq = Q̂ᵀ,

    to be run by ``linear_attention.forward(params, tokens)`` and read by ``trace.predict`` as they
    are: keys "demonstrations", normalised, minus sign. In the paper, Z ← Z + (1/n) P Z M (Zᵀ Q Z)
    with tokens as columns, the key is on Q's left: its Q is w_kq, the transpose of the code's.

    ``full``: the unconstrained variant, whose P and Q are [d+1, d+1] and stand for P̂ and Q̂.
    """
    allparam = jnp.asarray(allparam)
    chex.assert_rank(allparam, 5, custom_message=_RANK)
    d = allparam.shape[-1]
    chex.assert_shape(allparam, (None, None, 2, d, d), custom_message=_RANK)
    p, q = allparam[:, :, 0], allparam[:, :, 1]
    if not full:
        p, q = (jnp.pad(block, ((0, 0), (0, 0), (0, 1), (0, 1))) for block in (p, q))
        p = p.at[:, :, d, d].set(1)
    return Params(w_kq=q.swapaxes(2, 3), w_pv=p)


def to_ahn(params: Params, *, full: bool = False) -> Array:  # [L, H, 2, d, d], or e for d if full
    """``allparam`` of the same model: the inverse of ``ahn`` (its formulas).

    The d x d layout has room for w_pv = diag(P', c), c ≠ 0, and w_kq = diag(K, 0) alone. A layer
    knows only the product of the two, so P = P'/c and Q = c Kᵀ. Any other model needs ``full``.
    """
    if not isinstance(params, Params):
        raise TypeError(
            f"params is {type(params).__module__}.{type(params).__name__}; expected "
            "linear_attention.Params: of factored linear heads, transformer.merge(params, config)"
        )
    chex.assert_rank([params.w_kq, params.w_pv], 4, custom_message="weights are [L, H, e, e]")
    p, q = params.w_pv, params.w_kq.swapaxes(2, 3)
    if not full:
        corner = p[:, :, -1:, -1:]
        _check_blocks(params, corner)
        p, q = p[:, :, :-1, :-1] / corner, q[:, :, :-1, :-1] * corner
    return jnp.stack([p, q], axis=2)


def _check_blocks(params: Params, corner: Array) -> None:
    """Raise unless the label's row and column hold what the d x d layout takes for granted."""
    advice = "it has no place in the d x d layout; use to_ahn(params, full=True)"
    for name in ("w_kq", "w_pv"):
        weights = getattr(params, name)
        border = jnp.abs(weights[:, :, -1, :-1]) + jnp.abs(weights[:, :, :-1, -1])
        if border.any():
            raise ValueError(
                f"{name} couples covariates and label, by up to {border.max():.2g}, where 0 is "
                f"expected: {advice}"
            )
    if params.w_kq[:, :, -1, -1].any():
        raise ValueError(f"w_kq has a label-label entry, where 0 is expected: {advice}")
    if not corner.all():
        raise ValueError(f"w_pv has a head whose label-label entry is 0, not 1: {advice}")
