"""Attention and states of linear recurrences, from the arrays of any implementation.

One head. Token t moves a state S [k, v], from 0, and reads it:

    S ← D S - β w (rᵀ D S) + β k vᵀ,  read Sᵀq,  D = diag(g)

with ``gate`` g, ``step`` β, ``removed`` r (what the decayed state is read with, for removal),
``written`` w (the direction from which that is taken away; r unless given) and ``keys`` k. Without
``removed`` nothing is taken away. The read is Σ_i α_ti v_i, and ``attention`` is α, the counterpart
of softmax weights.

The arguments of published layers, k̂ = k/|k| and other names as in the papers:

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
    Longhorn 2407.14207           keys k, step Δ = β/(1 + β|k|²), removed k: the update it derives;
                                  keys k, step Δ, gate 1 - Δk⊙k: as released, v a channel each

Mesa layers solve a system; their α is in ``recurrent.attention``. Divide queries by √k, and
normalise those of delta layers, where the layer does so. Sources of the forms: the papers, code of
their authors (Longhorn, Mamba-2, Gated DeltaNet-2) and of flash-linear-attention (Kimi, RWKV-7,
whose κ̂ reads the state before it decays: hence κ̂/w).
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least
from lsa_lab.models import recurrent_state
from lsa_lab.models.recurrent_state import Writes

_reads, _compute_states = jax.jit(recurrent_state.reads), jax.jit(recurrent_state.compute_states)


def attention(
    queries: ArrayLike,  # [T, k]
    keys: ArrayLike,  # [T J, k]
    *,
    step: ArrayLike | None = None,  # [] or [T J]
    gate: ArrayLike | None = None,  # [], [T], [T, 1] or [T, k]
    removed: ArrayLike | None = None,  # [T J, k]
    written: ArrayLike | None = None,  # [T J, k]
    values_per_token: int = 1,
) -> Array:  # [T, T] or, for J values a token, [T, T, J]
    """Return the weights α_ti with which token t reads the value of token i.

    A token with J values makes J changes, in their order, after its gate, and reads after the last.
    """
    queries = jnp.asarray(queries)
    chex.assert_rank(queries, 2, custom_message="queries are [T, k]; use jax.vmap for heads")
    per_token = check_at_least(values_per_token, "values_per_token")
    count = len(queries)
    values = jnp.eye(count * per_token, dtype=queries.dtype)
    changes, stride = _changes(keys, values, step, gate, removed, written, per_token)
    if len(changes.write) != count * stride:
        rows = len(changes.write) // stride * per_token
        raise ValueError(f"keys have {rows} rows and queries {count}: expected {per_token} a query")
    read = _reads(changes, jnp.repeat(queries, stride, 0))[stride - 1 :: stride]
    return read if per_token == 1 else read.reshape(count, count, per_token)


def states(
    keys: ArrayLike,  # [T J, k]
    values: ArrayLike,  # [T J, v]
    *,
    step: ArrayLike | None = None,
    gate: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    written: ArrayLike | None = None,
    values_per_token: int = 1,
) -> Array:  # [T, k, v]
    """Return S after every token; the arrays are those of ``attention``."""
    per_token = check_at_least(values_per_token, "values_per_token")
    values = jnp.asarray(values)
    changes, stride = _changes(keys, values, step, gate, removed, written, per_token)
    return _compute_states(changes)[stride - 1 :: stride]


def _changes(
    keys: ArrayLike,
    values: Array,
    step: ArrayLike | None,
    gate: ArrayLike | None,
    removed: ArrayLike | None,
    written: ArrayLike | None,
    per_token: int,
) -> tuple[Writes, int]:
    """Return the changes of ``recurrent_state`` and their number a token.

    Where something is removed, one change decays and removes, and one writes.
    """
    keys = jnp.asarray(keys, values.dtype)
    chex.assert_rank(keys, 2, custom_message="keys are [T J, k]; use jax.vmap for heads")
    rows, width = keys.shape
    if rows % per_token or len(values) != rows:
        raise ValueError(
            f"keys have {rows} rows and values {len(values)}: both have values_per_token = "
            f"{per_token} rows for each token"
        )
    steps = _broadcast_step(step, keys)
    write, decay = steps * keys, _gates(gate, rows, width, per_token, keys)
    if removed is None:
        if written is not None:
            raise ValueError("written needs removed: it is the direction of what is removed")
        return Writes(write, values, None, decay), per_token
    reading = jnp.asarray(removed, keys.dtype)
    direction = reading if written is None else jnp.asarray(written, keys.dtype)
    for name, array in (("removed", reading), ("written", direction)):
        if array.shape != keys.shape:
            raise ValueError(f"{name} has shape {array.shape}: expected that of keys, {keys.shape}")
    if decay is not None:
        reading = decay * reading
        decay = _interleave(decay, jnp.ones_like(decay))
    nothing = jnp.zeros_like(keys)
    return Writes(
        _interleave(steps * direction, write),
        _interleave(jnp.zeros_like(values), values),
        _interleave(reading, nothing),
        decay,
    ), 2 * per_token


def _broadcast_step(step: ArrayLike | None, keys: Array) -> Array:  # [T J, 1]
    rows = len(keys)
    steps = jnp.ones((), keys.dtype) if step is None else jnp.asarray(step, keys.dtype)
    if steps.shape not in ((), (rows,), (rows, 1)):
        raise ValueError(f"step has shape {steps.shape}: expected [], or [T J] = [{rows}]")
    return jnp.broadcast_to(steps.reshape(-1, 1), (rows, 1))


def _gates(
    gate: ArrayLike | None, rows: int, width: int, per_token: int, keys: Array
) -> Array | None:  # [T J, 1 or k]
    """Return the gate of every change: only the first change of a token has one."""
    if gate is None:
        return None
    gates, count = jnp.asarray(gate, keys.dtype), rows // per_token
    shape = gates.shape if gates.ndim == 2 else (gates.size, 1)
    gates = gates.reshape(shape) if gates.ndim < 2 else gates
    if gates.ndim > 2 or shape[0] not in (1, count) or shape[1] not in (1, width):
        raise ValueError(
            f"gate has shape {jnp.shape(gate)}: expected [], [T], [T, 1] or [T, k], with "
            f"T = {count} and k = {width}"
        )
    gates = jnp.broadcast_to(gates, (count, shape[1]))
    later = jnp.ones((count, per_token - 1, shape[1]), keys.dtype)
    return jnp.concatenate([gates[:, None], later], 1).reshape(rows, -1)


def _interleave(first: Array, second: Array) -> Array:  # [m, w] x 2 -> [2m, w]
    """Return the rows of both in turns."""
    return jnp.stack([first, second], 1).reshape(2 * len(first), -1)
