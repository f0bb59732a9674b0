"""Choices that depend on what is chosen already, or on the outcome itself.

``chosen`` [m] marks the demonstrations of the prompt by 1, all others by 0. As weights of a second
moment, S_0 = Σ_i c_i e_i e_iᵀ / Σ_i c_i, they give masked linear attention a prompt of fixed shape,
so that every function here runs under jit. With nothing chosen the sum is 0: guard the division.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_size, is_concrete, side_by_side
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params


def pick_greedily(
    score: Callable[[Array], Array],  # chosen [m] -> [m]
    chosen: Array,  # [m], zeros to start from an empty prompt
    size: int,
) -> Array:  # [size]
    """``size`` demonstrations more, each with the highest score(chosen) given those before it.

    A score that ignores ``chosen`` gives what ``scores.select`` gives. Of equal scores the lower
    index is picked. A NaN or an infinity among those still open is an error; under jit, where
    nothing can be raised, such a demonstration is not picked, and if there is no other the place
    holds m, an index outside the pool. Demonstrations marked at the start are not picked again.
    """
    _check_chosen(chosen)
    m = chosen.shape[0]
    free = int((np.asarray(chosen) == 0).sum()) if is_concrete(chosen) else m
    size = check_size(size, free, "open demonstrations")

    def pick(chosen: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        scores = score(chosen)
        chex.assert_shape(scores, (m,), custom_message="score(chosen) is [m], as chosen")
        finite, still_open = jnp.isfinite(scores), chosen == 0
        ranked = jnp.where(finite & still_open, scores, -jnp.inf)
        best = jnp.where(ranked.max() > -jnp.inf, jnp.argmax(ranked), m)
        return chosen.at[best].set(1, mode="drop"), (best, (~finite & still_open).sum())

    _, (indices, bad) = jax.lax.scan(pick, chosen, length=size)
    if is_concrete(bad) and (np.asarray(bad) > 0).any():
        first = int(np.flatnonzero(np.asarray(bad))[0])
        raise ValueError(
            f"{int(bad[first])} scores are NaN or infinite at pick {first}: what has overflowed "
            "has no rank; drop those demonstrations or scale the weights down"
        )
    return indices


def flow_joining(params: Params, pool: Array, query: Array, chosen: Array) -> Array:  # [L, m, e]
    """∂ŷ/∂e_i of each demonstration of the pool [m, e], should it join those that are chosen.

    GradS recomputed: a score of its slice [layer] goes to ``pick_greedily``. For masked, normalised
    linear attention: S_0 = (Σ_j c_j e_j e_jᵀ + e_i e_iᵀ)/(Σ_j c_j + 1), ŷ = -(W_l)_{e,1..d} x_query
    (derived here; docs/theory, "Scores of demonstrations").
    """
    _check_chosen(chosen)
    chex.assert_shape(pool, (*chosen.shape, query.shape[0] + 1), custom_message="pool is [m, d+1]")
    together = pool.T @ (chosen[:, None] * pool)

    def predictions(token: Array) -> Array:  # [L]
        second_moment = (together + jnp.outer(token, token)) / (chosen.sum() + 1)
        return -moments.layer_maps(params, second_moment)[1:, -1, :-1] @ query

    return jnp.moveaxis(
        jax.lax.map(jax.jacrev(predictions), pool, batch_size=side_by_side(None, 256)), 0, 1
    )


def leave_one_out(
    error: Callable[[Array], Array], chosen: Array, *, together: int | None = None
) -> Array:  # [m]
    """What each demonstration is worth: error without it minus error with it.

    All others stay as they are in ``chosen``: a demonstration of the prompt is judged by its
    removal, any other by its addition. error(chosen [m]) -> []; m + 1 of them are computed,
    ``together`` at a time. It is a score for ``pick_greedily`` too: forward selection.
    """
    width = side_by_side(together, 256)
    _check_chosen(chosen)
    chosen = jnp.asarray(chosen)
    now = error(chosen)
    chex.assert_shape(now, (), custom_message="error(chosen) is one number")

    def changed(i: Array) -> Array:  # []
        return error(chosen.at[i].set(1 - chosen[i]))

    errors = jax.lax.map(changed, jnp.arange(chosen.shape[0]), batch_size=width)
    return jnp.where(chosen > 0, errors - now, now - errors)


def _check_chosen(chosen: Array) -> None:
    chex.assert_rank(chosen, 1, custom_message="chosen is [m], of one prompt; vmap over many")
    chex.assert_type(chosen, float)
    if is_concrete(chosen) and not np.isin(np.asarray(chosen), (0, 1)).all():
        raise ValueError("chosen holds other numbers than 0 and 1: it marks demonstrations")
