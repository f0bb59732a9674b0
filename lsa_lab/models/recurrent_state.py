"""Rank-one changes of a state S [k, v] one after the other, what is read in between, regressions.

One head, and no weights: ``recurrent`` makes the changes.
"""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_CHUNK = 32  # the most changes that are solved for at once
_SHORT = 64  # changes: fewer are scanned one by one


class Writes(flax.struct.PyTreeNode):
    """The changes S ← diag(gate) S - erase (removeᵀ S) + write valueᵀ, in their order."""

    gate: Array  # [m, k] or, of a gate that all channels share, [m, 1]
    erase: Array  # [m, k]
    remove: Array  # [m, k]
    write: Array  # [m, k]
    value: Array  # [m, v]


def reads(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """Sᵀq after every change: by chunks if changes are many and all channels share a gate."""
    many = len(queries) >= _SHORT and writes.gate.shape[-1] == 1
    return chunked(writes, queries) if many else scanned(writes, queries)


def every_state(writes: Writes) -> Array:  # [m, k, v]
    """S after every change."""
    first = jnp.zeros((writes.write.shape[1], writes.value.shape[1]), writes.value.dtype)

    def step(state: Array, change: Writes) -> tuple[Array, Array]:
        state = _change(state, change)
        return state, state

    return jax.lax.scan(step, first, writes)[1]


def scanned(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """Sᵀq after every change, one after the other."""

    def step(state: Array, row: tuple[Writes, Array]) -> tuple[Array, Array]:
        state = _change(state, row[0])
        return state, row[1] @ state

    first = jnp.zeros((queries.shape[1], writes.value.shape[1]), queries.dtype)
    return jax.lax.scan(step, first, (writes, queries))[1]


def chunked(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """The same with one state a chunk: products of matrices, linear in m.

    In a chunk that begins at S, with γ_ij the gates between two changes, what change i removes is
    c_i = r_iᵀS_{i-1} = γ_i0 r_iᵀS + Σ_{j<i} γ_ij (r_i·b_j v_j - r_i·a_j c_j): a triangular system
    (the UT transform of 2406.06484, with gates as in 2412.06464).
    """
    count = -(-len(queries) // _CHUNK)
    size = -(-len(queries) // count)  # chunks of nearly one size: little is padded
    padding = count * size - len(queries)

    def chunks(leaf: Array, fill: float = 0.0) -> Array:  # [c, size, ...]
        return jnp.pad(leaf, ((0, padding), (0, 0)), constant_values=fill).reshape(count, size, -1)

    rows = jax.tree.map(chunks, writes).replace(gate=chunks(writes.gate, 1.0))
    queries_of = chunks(queries)
    gate = rows.gate[..., 0]
    lower = jnp.tril(jnp.ones((size, size), bool))
    # decay[i, j] = g_{j+1} ... g_i, a product and no quotient: gates may be 0
    factors = jnp.where((lower & ~jnp.eye(size, dtype=bool))[None], gate[:, :, None], 1.0)
    decay = jnp.where(lower[None], jnp.cumprod(factors, axis=1), 0.0)
    since_start = jnp.cumprod(gate, axis=1)  # [c, i]
    before = jnp.pad(decay[:, :-1], ((0, 0), (1, 0), (0, 0)))  # up to the change before i
    start_before = jnp.pad(since_start[:, :-1], ((0, 0), (1, 0)), constant_values=1.0)

    def pair(left: Array, right: Array, gates: Array) -> Array:  # [c, i, j]
        return jnp.einsum("cik,cjk->cij", left, right) * gates

    system = pair(rows.remove, rows.erase, before) + jnp.eye(size, dtype=gate.dtype)[None]
    inside = pair(rows.remove, rows.write, before) @ rows.value
    from_state = start_before[..., None] * rows.remove
    solved = _unit_inverse(system) @ jnp.concatenate([inside, from_state], -1)
    own, slope = (
        solved[..., : inside.shape[-1]],
        solved[..., inside.shape[-1] :],
    )  # c = own + slope S
    to_end = decay[:, -1][..., None]

    def step(state: Array, row: tuple) -> tuple[Array, tuple]:
        own, slope, erase, write, value, left, total = row
        removed = own + slope @ state
        after = total * state - (left * erase).T @ removed + (left * write).T @ value
        return after, (state, removed)

    first = jnp.zeros((queries.shape[1], writes.value.shape[1]), queries.dtype)
    along = (own, slope, rows.erase, rows.write, rows.value, to_end, since_start[:, -1])
    starts, removed = jax.lax.scan(step, first, along)[1]
    read = since_start[..., None] * (queries_of @ starts)
    read = read - pair(queries_of, rows.erase, decay) @ removed
    read = read + pair(queries_of, rows.write, decay) @ rows.value
    return read.reshape(count * size, -1)[: len(queries)]


def _unit_inverse(system: Array) -> Array:  # [c, i, i] with ones on the diagonal, 0 above it
    """Its inverse from those of its diagonal blocks, whose width doubles:

        [A 0; C B]⁻¹ = [A⁻¹ 0; -B⁻¹CA⁻¹ B⁻¹]

    LAPACK's batched triangular solve is not called: on a machine of two cores two of them in one
    program, as a gradient has, can wait for each other for ever (jaxlib 0.10).
    """
    places, width = np.arange(system.shape[-1]), 1
    inverse = jnp.broadcast_to(jnp.eye(len(places), dtype=system.dtype)[None], system.shape)
    while width < len(places):
        block = places // width
        below = (block[:, None] == block + 1) & (block % 2 == 0)  # C of every pair of blocks
        inverse = inverse - inverse @ jnp.where(below[None], system, 0) @ inverse
        width *= 2
    return inverse


def regression_sums(
    step: Array,  # [T]
    gate: Array,  # [T]
    keys: Array,  # [T, k]
    values: Array,  # [T, v]
) -> tuple[Array, Array]:  # [T, k, k], [T, k, v]
    """Σ βkkᵀ and Σ βkvᵀ after every token, forgotten by the gates."""

    def add(sums: Any, row: tuple) -> tuple[tuple, tuple]:
        beta, g, k, v = row
        moment = g * sums[0] + beta * k[:, None] * k[None]
        sums = moment, g * sums[1] + beta * k[:, None] * v[None]
        return sums, sums

    width = keys.shape[1]
    first = jnp.zeros((width, width), keys.dtype), jnp.zeros((width, values.shape[1]), keys.dtype)
    _, (moments, products) = jax.lax.scan(add, first, (step, gate, keys, values))
    return moments, products


def solved_regressions(
    step: Array, gate: Array, keys: Array, values: Array, penalty: Array
) -> Array:  # [T, k, v]
    """(Σ βkkᵀ + λI)⁻¹ Σ βkvᵀ after every token, by Cholesky's factors; gates leave λ alone.

    Raises TypeError for half precision, which has no factors.
    """
    if keys.dtype.itemsize < 4:
        raise TypeError(f"keys are {keys.dtype}: Cholesky's factors are of float32 or float64")
    moments, products = regression_sums(step, gate, keys, values)
    factors = jnp.linalg.cholesky(
        moments + penalty * jnp.eye(keys.shape[1], dtype=keys.dtype)[None]
    )
    return jax.scipy.linalg.cho_solve((factors, True), products)


def _change(state: Array, w: Writes) -> Array:  # [k, v], one change -> [k, v]
    erased = w.erase[:, None] * (w.remove @ state)[None]
    return w.gate[:, None] * state - erased + w.write[:, None] * w.value[None]
