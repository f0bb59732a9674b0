"""Greedy choices whose score depends on what is chosen already, or on the outcome itself.

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

from lsa_lab.arguments import (
    cache_if_jitted,
    check_byte_order,
    check_size,
    choose_batch_size,
    is_concrete,
)
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params


def pick_greedily(
    score: Callable[[Array], Array],  # chosen [m] -> [m]
    chosen: Array,  # [m]
    size: int,
) -> Array:  # [size]
    """Choose ``size`` more demonstrations, each with the highest score(chosen) at its turn.

    A score that ignores ``chosen`` gives what ``scores.select`` gives.

    Args:
        score: the scores of all demonstrations given those chosen; of equal ones the lower index
            is picked.
        chosen: zeros for an empty prompt; demonstrations marked by 1 are not picked again.
        size: at most the number of zeros in ``chosen``.

    Returns:
        The indices in the order of choice. Under jit a score that is not finite is not picked; if
        there is no other, the place holds m, an index outside the pool.

    Raises:
        ValueError: outside jit, a score of an open demonstration is NaN or infinite.
    """
    _check_chosen(chosen)
    m = chosen.shape[0]
    free = int((np.asarray(chosen) == 0).sum()) if is_concrete(chosen) else m
    size = check_size(size, free, "open demonstrations")
    indices, bad = _compile_picks(score, size)(chosen)
    if is_concrete(bad) and (np.asarray(bad) > 0).any():
        first = int(np.flatnonzero(np.asarray(bad))[0])
        raise ValueError(
            f"{int(bad[first])} scores are NaN or infinite at pick {first}: drop those "
            "demonstrations or scale the weights down"
        )
    return indices


@cache_if_jitted
def _compile_picks(score: Callable[[Array], Array], size: int) -> Callable:
    """Return the program chosen -> indices, and at each pick the number of scores not finite."""

    def pick(chosen: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        scores = score(chosen)
        m = len(chosen)
        chex.assert_shape(scores, (m,), custom_message="score(chosen) is [m], as chosen")
        finite, still_open = jnp.isfinite(scores), chosen == 0
        ranked = jnp.where(finite & still_open, scores, -jnp.inf)
        best = jnp.where(ranked.max() > -jnp.inf, jnp.argmax(ranked), m)
        return chosen.at[best].set(1, mode="drop"), (best, (~finite & still_open).sum())

    return jax.jit(lambda chosen: jax.lax.scan(pick, chosen, length=size)[1])


def candidate_flows(params: Params, pool: Array, query: Array, chosen: Array) -> Array:
    """Return ∂ŷ/∂e_i, [L, m, e], of each demonstration i of the pool added to the chosen ones.

    This is GradS recomputed: a score of its slice [layer] goes to ``pick_greedily``. For masked,
    normalised linear attention: S_0 = (Σ_j c_j e_j e_jᵀ + e_i e_iᵀ)/(Σ_j c_j + 1),
    ŷ = -(W_l)_{e,1..d} x_query (derived here; docs/theory, "Scores of demonstrations").
    """
    _check_chosen(chosen)
    chex.assert_shape(pool, (*chosen.shape, query.shape[0] + 1), custom_message="pool is [m, d+1]")
    return _candidate_flows(params, pool, query, chosen)


@jax.jit
def _candidate_flows(params: Params, pool: Array, query: Array, chosen: Array) -> Array:
    sums = pool.T @ (chosen[:, None] * pool)

    def predictions(token: Array) -> Array:  # [L]
        second_moment = (sums + jnp.outer(token, token)) / (chosen.sum() + 1)
        return -moments.layer_maps(params, second_moment)[1:, -1, :-1] @ query

    flows = jax.lax.map(jax.jacrev(predictions), pool, batch_size=choose_batch_size(None, 256))
    return jnp.moveaxis(flows, 0, 1)


def leave_one_out(error: Callable[[Array], Array], chosen: Array) -> Array:  # [m] -> [m]
    """Return error without each demonstration minus error with it, the others as in ``chosen``.

    A demonstration of the prompt is removed, any other one is added: m + 1 values of
    error(chosen [m]) -> [] are computed. As a score for ``pick_greedily`` it is forward selection.
    """
    _check_chosen(chosen)
    chosen = jnp.asarray(chosen)
    now = error(chosen)
    chex.assert_shape(now, (), custom_message="error(chosen) is one number")
    errors = _compile_changes(error)(chosen)
    return jnp.where(chosen > 0, errors - now, now - errors)


@cache_if_jitted
def _compile_changes(error: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the program chosen -> the errors [m] with each demonstration changed."""

    def compute(chosen: Array) -> Array:  # [m]
        changed = jnp.abs(chosen[None] - jnp.eye(len(chosen), dtype=chosen.dtype))
        return jax.lax.map(error, changed, batch_size=choose_batch_size(None, 256))

    return jax.jit(compute)


def _check_chosen(chosen: Array) -> None:
    chex.assert_rank(chosen, 1, custom_message="chosen is [m], of one prompt; vmap over many")
    chex.assert_type(chosen, float)
    check_byte_order(chosen, "chosen")
    if is_concrete(chosen) and not np.isin(np.asarray(chosen), (0, 1)).all():
        raise ValueError("chosen holds other numbers than 0 and 1: it marks demonstrations")
