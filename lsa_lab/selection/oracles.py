"""Choices that depend on what is chosen already, or on the outcome itself.

``chosen`` [m] marks the demonstrations of the prompt by 1, all others by 0. As weights of a second
moment, S_0 = Σ_i c_i e_i e_iᵀ / Σ_i c_i, they give masked linear attention a prompt of fixed shape,
so that every function here runs under jit. With nothing chosen the sum is 0: guard the division.
"""

import functools
import itertools
import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import (
    cached_if_jitted,
    check_at_least,
    check_byte_order,
    check_size,
    is_concrete,
    side_by_side,
)
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params

MAX_SUBSETS = 200_000  # subsets that best_subset is willing to try


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
    indices, bad = _picks(score, size)(chosen)
    if is_concrete(bad) and (np.asarray(bad) > 0).any():
        first = int(np.flatnonzero(np.asarray(bad))[0])
        raise ValueError(
            f"{int(bad[first])} scores are NaN or infinite at pick {first}: what has overflowed "
            "has no rank; drop those demonstrations or scale the weights down"
        )
    return indices


@cached_if_jitted
def _picks(score: Callable[[Array], Array], size: int) -> Callable:
    """The program of ``pick_greedily``: chosen -> indices, and how many scores were not finite."""

    def pick(chosen: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        scores = score(chosen)
        m = len(chosen)
        chex.assert_shape(scores, (m,), custom_message="score(chosen) is [m], as chosen")
        finite, still_open = jnp.isfinite(scores), chosen == 0
        ranked = jnp.where(finite & still_open, scores, -jnp.inf)
        best = jnp.where(ranked.max() > -jnp.inf, jnp.argmax(ranked), m)
        return chosen.at[best].set(1, mode="drop"), (best, (~finite & still_open).sum())

    return jax.jit(lambda chosen: jax.lax.scan(pick, chosen, length=size)[1])


def flow_joining(params: Params, pool: Array, query: Array, chosen: Array) -> Array:  # [L, m, e]
    """∂ŷ/∂e_i of each demonstration of the pool [m, e], should it join those that are chosen.

    GradS recomputed: a score of its slice [layer] goes to ``pick_greedily``. For masked, normalised
    linear attention: S_0 = (Σ_j c_j e_j e_jᵀ + e_i e_iᵀ)/(Σ_j c_j + 1), ŷ = -(W_l)_{e,1..d} x_query
    (derived here; docs/theory, "Scores of demonstrations").
    """
    _check_chosen(chosen)
    chex.assert_shape(pool, (*chosen.shape, query.shape[0] + 1), custom_message="pool is [m, d+1]")
    return _flow_joining(params, pool, query, chosen)


@jax.jit
def _flow_joining(params: Params, pool: Array, query: Array, chosen: Array) -> Array:
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
    errors = _changed(error, width)(chosen)
    return jnp.where(chosen > 0, errors - now, now - errors)


@cached_if_jitted
def _changed(error: Callable[[Array], Array], width: int) -> Callable[[Array], Array]:
    """The program of ``leave_one_out``: chosen -> the errors with each demonstration changed."""

    def errors(chosen: Array) -> Array:  # [m]
        def changed(i: Array) -> Array:  # []
            return error(chosen.at[i].set(1 - chosen[i]))

        return jax.lax.map(changed, jnp.arange(len(chosen)), batch_size=width)

    return jax.jit(errors)


def best_subset(
    error: Callable[[Array], Array],  # indices [size] -> []
    m: int,
    size: int,
    *,
    together: int | None = None,
) -> tuple[Array, Array]:  # [size], []
    """The subset of least error(indices), and that error, among all m choose ``size`` of them.

    Indices ascend; of equal subsets the first in lexicographic order. ``together`` of them are
    tried at a time, and above ``MAX_SUBSETS`` none. An infinite error is larger than any other. A
    NaN is an error; under jit, where nothing can be raised, it counts as infinite, and if nothing
    is finite the indices are m.
    """
    width = side_by_side(together, 256)
    size = check_size(size, check_at_least(m, "m"))
    count = math.comb(m, size)
    if count > MAX_SUBSETS:
        raise ValueError(
            f"{count} subsets of {size} among {m} demonstrations: more than {MAX_SUBSETS} are not "
            "tried; take a smaller pool, or pick_greedily with leave_one_out as the score"
        )
    subsets = jnp.asarray(_subsets(m, size))
    errors = jax.lax.map(error, subsets, batch_size=width)
    chex.assert_shape(errors, (count,), custom_message="error(indices) is one number")
    if is_concrete(errors) and np.isnan(errors).any():
        first = np.asarray(subsets)[np.isnan(errors)][0].tolist()
        raise ValueError(
            f"{np.isnan(errors).sum()} of {count} errors are NaN, the first of subset {first}: no "
            "subset is the best"
        )
    ranked = jnp.where(jnp.isfinite(errors), errors, jnp.inf)
    best = jnp.argmin(ranked)
    return jnp.where(jnp.isfinite(ranked[best]), subsets[best], m), ranked[best]


@functools.cache
def _subsets(m: int, size: int) -> np.ndarray:  # [m choose size, size]
    return np.array(list(itertools.combinations(range(m), size)), int)


def _check_chosen(chosen: Array) -> None:
    chex.assert_rank(chosen, 1, custom_message="chosen is [m], of one prompt; vmap over many")
    chex.assert_type(chosen, float)
    check_byte_order(chosen, "chosen")
    if is_concrete(chosen) and not np.isin(np.asarray(chosen), (0, 1)).all():
        raise ValueError("chosen holds other numbers than 0 and 1: it marks demonstrations")
