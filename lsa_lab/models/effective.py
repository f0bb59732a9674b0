"""Exact attention and states of linear recurrences, from raw arrays of any implementation.

One head. Token t moves a state S [k, v], from 0, and reads it:

    S ← D S - β w (rᵀ D S) + β k vᵀ,  read Sᵀq,  D = diag(g)

with ``gate`` g, ``step`` β, ``removed`` r (the direction that is read for removal), ``written`` w
(the direction along which it is removed; r unless given) and ``keys`` k. Without ``removed``
nothing is removed. What published layers hand in, with k̂ = k/|k| and their papers' names:

    linear attention 2006.16236   keys k
    RetNet 2307.08621             keys k, gate γ of the head
    GLA 2312.06635                keys k, gate α [T, k]
    Mamba-2 (SSD) 2405.21060      queries C, keys B, step Δ, gate exp(ΔA); values x
    DeltaNet 2406.06484           keys k̂, step β, removed k̂
    Gated DeltaNet 2412.06464     keys k̂, step β, removed k̂, gate α
    Kimi (KDA) 2510.26692         keys k̂, step β, removed k̂, gate α [T, k]
    Gated DeltaNet-2 2605.22791   keys k̂, removed b⊙k̂, written k̂, gate α [T, k]; values w⊙v
    RWKV-7 2503.14456             queries r, keys k̃, removed κ̂/w, written a⊙κ̂, gate w [T, k]
    DeltaProduct 2502.10297       keys k̂ [T J, k], step β [T J], removed k̂, values_per_token J
    TTT-linear 2407.04620         keys k, step η, removed k: mini-batches of one token, no norm
    Longhorn 2407.14207           keys k, step β/(1 + β|k|²), removed k: the update that it derives

Queries of many layers are divided by √k, and of delta layers normalised, before they are handed in.
Kimi's and Gated DeltaNet-2's forms are from public pages and flash-linear-attention's code.
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least
from lsa_lab.estimators.prefixes import outer


def attention(
    queries: ArrayLike,  # [T, k]
    keys: ArrayLike,  # [T J, k]
    *,
    step: ArrayLike | None = None,
    gate: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    written: ArrayLike | None = None,
    values_per_token: int = 1,
) -> Array:  # [T, T] or, for J values a token, [T, T, J]
    """Return the α_ti with which token t reads the value of token i: its read is Σ_i α_ti v_i.

    A token with J values makes J moves after its gate, and is read after the last. The arrays are
    those of ``states``.
    """
    queries, rows = jnp.asarray(queries), len(jnp.asarray(keys))
    values = jnp.eye(rows, dtype=queries.dtype)
    arrays = dict(step=step, gate=gate, removed=removed, written=written)
    path = states(keys, values, **arrays, values_per_token=values_per_token)
    chex.assert_shape(queries, path.shape[:2])
    weights = jnp.einsum("tk,tkv->tv", queries, path)
    shape = (len(path), len(path), values_per_token)
    return weights if values_per_token == 1 else weights.reshape(shape)


def states(
    keys: ArrayLike,  # [T J, k]
    values: ArrayLike,  # [T J, v]
    *,
    step: ArrayLike | None = None,  # [] or one for each key
    gate: ArrayLike | None = None,  # [], [T], [T, 1] or [T, k]
    removed: ArrayLike | None = None,  # [T J, k]
    written: ArrayLike | None = None,  # [T J, k]
    values_per_token: int = 1,
) -> Array:  # [T, k, v]
    """Return S after every token.

    Raises ValueError for ``written`` without ``removed``, and for shapes that do not agree.
    """
    check_at_least(values_per_token, "values_per_token")
    values = jnp.asarray(values)
    keys = jnp.asarray(keys, values.dtype)
    chex.assert_rank([keys, values], 2, custom_message="keys are [T J, k]; use jax.vmap for heads")
    (rows, width), dtype = keys.shape, keys.dtype
    count = rows // values_per_token
    if rows % values_per_token or len(values) != rows:
        raise ValueError(
            f"keys have {rows} rows and values {len(values)}: both have values_per_token = "
            f"{values_per_token} rows for each token"
        )
    if removed is None and written is not None:
        raise ValueError("written without removed: it is the direction of what is removed")
    steps = jnp.ones(()) if step is None else jnp.asarray(step)
    gates = jnp.ones(()) if gate is None else jnp.asarray(gate)
    if steps.size not in (1, rows):
        raise ValueError(f"step has shape {steps.shape}: expected [] or [T J] = [{rows}]")
    shape: tuple[int, ...] = gates.shape
    if shape not in ((), (1,), (count,), (count, 1), (count, width)):
        raise ValueError(f"gate has shape {shape}: expected [], [T], [T, 1] or [T, k]")
    read = jnp.zeros_like(keys) if removed is None else jnp.asarray(removed, dtype)
    taken = read if written is None else jnp.asarray(written, dtype)
    chex.assert_equal_shape([keys, read, taken])
    steps = jnp.broadcast_to(steps.astype(dtype).reshape(-1, 1), (rows, 1))
    gates = gates.astype(dtype).reshape(-1, shape[1] if len(shape) == 2 else 1)
    moves = (steps * keys, values, read, steps * taken)

    def move(state: Array, token: tuple) -> tuple[Array, Array]:
        g, moves = token
        state = g[:, None] * state
        for write, value, r, w in zip(*moves, strict=True):
            state = state - outer(w, r @ state) + outer(write, value)
        return state, state

    by_token = jax.tree.map(lambda x: x.reshape(count, values_per_token, -1), moves)
    gates = jnp.broadcast_to(gates, (count, gates.shape[1]))
    return jax.lax.scan(move, jnp.zeros((width, values.shape[1]), dtype), (gates, by_token))[1]
