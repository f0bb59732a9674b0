"""Rank-one changes of the state S [k, v] of one head, reads between them, and regressions."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.estimators.prefixes import outer

_CHUNK = 32  # the most changes that are solved for at once
_SHORT = 64  # changes: fewer are scanned one by one


class Writes(flax.struct.PyTreeNode):
    """The changes S ← diag(gate) S + write (value - removeᵀ S)ᵀ, in their order.

    Without a gate nothing is forgotten; without ``remove`` nothing is erased.
    """

    write: Array  # [m, k]
    value: Array  # [m, v]
    remove: Array | None = None  # [m, k]
    gate: Array | None = None  # [m, k] or, of a gate that all channels share, [m, 1]


def reads(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """Return Sᵀq after every change, by chunks if they are many and all channels share a gate."""
    shared = writes.gate is None or writes.gate.shape[-1] == 1
    return (read_chunks if shared and len(queries) >= _SHORT else read_scan)(writes, queries)


def compute_states(writes: Writes) -> Array:  # [m, k, v]
    """Return S after every change."""

    def step(state: Array, change: Writes) -> tuple[Array, Array]:
        state = _change(state, change)
        return state, state

    return jax.lax.scan(step, _zero_state(writes), writes)[1]


def read_scan(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """Return Sᵀq after every change, one after the other."""

    def step(state: Array, row: tuple[Writes, Array]) -> tuple[Array, Array]:
        state = _change(state, row[0])
        return state, row[1] @ state

    return jax.lax.scan(step, _zero_state(writes), (writes, queries))[1]


def read_chunks(writes: Writes, queries: Array) -> Array:  # [m], [m, k] -> [m, v]
    """Return the same with one state a chunk: products of matrices, linear in m.

    In a chunk that begins at S, with γ_ij the gates between two changes, change i writes the error
    e_i = v_i - r_iᵀS_{i-1} = v_i - γ_i0 r_iᵀS - Σ_{j<i} γ_ij r_i·b_j e_j: a triangular system
    (the UT transform of 2406.06484, with gates as in 2412.06464).
    """
    count = -(-len(queries) // _CHUNK)
    size = -(-len(queries) // count)  # chunks of nearly one size: little is padded
    padding = count * size - len(queries)

    def chunks(leaf: Array, fill: float = 0.0) -> Array:  # [c, size, ...]
        return jnp.pad(leaf, ((0, padding), (0, 0)), constant_values=fill).reshape(count, size, -1)

    write, value, reading = map(chunks, (writes.write, writes.value, queries))
    gate = jnp.ones((1, size), write.dtype)
    if writes.gate is not None:
        gate = chunks(writes.gate, 1.0)[..., 0]  # [c, i]
    decay, since_start = _decays(gate)
    columns = write.swapaxes(1, 2)  # [c, k, j]
    width, solved = value.shape[-1], value
    if writes.remove is not None:
        remove = chunks(writes.remove)
        before = jnp.pad(decay[:, :-1], ((0, 0), (1, 0), (0, 0)))  # up to the change before i
        start_before = jnp.pad(since_start[:, :-1], ((0, 0), (1, 0)), constant_values=1.0)
        system = remove @ columns * before + jnp.eye(size, dtype=gate.dtype)[None]
        columns_and_slopes = jnp.concatenate([value, start_before[..., None] * remove], -1)
        solved = _unit_solve(system, columns_and_slopes)  # e = first columns - last columns S
    moved = (columns * decay[:, -1:]) @ solved  # [c, k, v] and, of what is erased, [c, k, k]
    total = jnp.broadcast_to(since_start[:, -1], (count,))

    def step(state: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        moved, total = row
        after = total * state + moved[:, :width]
        return (after if writes.remove is None else after - moved[:, width:] @ state), state

    starts = jax.lax.scan(step, _zero_state(writes), (moved, total))[1]
    errors = solved[..., :width]
    if writes.remove is not None:
        errors = errors - solved[..., width:] @ starts
    read = since_start[..., None] * (reading @ starts) + (reading @ columns * decay) @ errors
    return read.reshape(count * size, -1)[: len(queries)]


def _decays(gate: Array) -> tuple[Array, Array]:  # [c, i] -> [c, i, j], [c, i]
    """Return g_{j+1} ... g_i between two changes and g_1 ... g_i since the start of a chunk.

    They are products and no quotients: gates may be 0.
    """
    size = gate.shape[1]
    lower = jnp.tril(jnp.ones((size, size), bool))
    factors = jnp.where((lower & ~jnp.eye(size, dtype=bool))[None], gate[:, :, None], 1.0)
    decay = jnp.where(lower[None], jnp.cumprod(factors, axis=1), 0.0)
    return decay, jnp.cumprod(gate, axis=1)


@jax.custom_jvp
def _unit_solve(system: Array, rows: Array) -> Array:  # [c, i, i], [c, i, r] -> [c, i, r]
    """Return A⁻¹B for A with ones on the diagonal and 0 above it.

    Two of LAPACK's batched triangular solves in one program, as in a gradient, can deadlock on a
    machine of two cores (jaxlib 0.10).
    """
    return _unit_inverse(system) @ rows


@_unit_solve.defjvp
def _solve_derivative(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return d(A⁻¹B) = A⁻¹(dB - dA A⁻¹B), products as narrow as B."""
    inverse = _unit_inverse(primals[0])
    solved = inverse @ primals[1]
    return solved, inverse @ (tangents[1] - tangents[0] @ solved)


def _unit_inverse(system: Array) -> Array:  # [c, i, i]
    """Return A⁻¹ from the inverses of A's diagonal blocks, whose width doubles:

    [P 0; Q R]⁻¹ = [P⁻¹ 0; -R⁻¹QP⁻¹ R⁻¹]
    """
    count, size = len(system), system.shape[-1]
    full = 1 << (size - 1).bit_length()
    system = jnp.pad(system, ((0, 0), (0, full - size), (0, full - size)))
    inverse = jnp.ones((count, full, 1, 1), system.dtype)  # [c, blocks, width, width]
    while (width := inverse.shape[-1]) < full:
        pairs = full // width // 2
        blocks = system.reshape(count, pairs, 2, width, pairs, 2, width)[:, :, 1, :, :, 0]
        corner = jnp.moveaxis(jnp.diagonal(blocks, axis1=1, axis2=3), -1, 1)  # Q of every pair
        upper, lower = inverse[:, 0::2], inverse[:, 1::2]
        bottom = jnp.concatenate([-lower @ corner @ upper, lower], -1)
        upper = jnp.pad(upper, ((0, 0), (0, 0), (0, 0), (0, width)))
        inverse = jnp.concatenate([upper, bottom], -2)
    return inverse[:, 0, :size, :size]


@jax.custom_jvp
def unit_rows(keys: Array) -> Array:  # [m, k]
    """Return k/|k|, and 0 for 0, of keys in any unit."""
    return _unit_and_length(keys)[0]


@unit_rows.defjvp
def _unit_derivative(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Return (dk - u (u·dk))/|k| for u = k/|k|, and 0 for 0: a fifth less of a layer's time."""
    unit, length = _unit_and_length(primals[0])
    moved = tangents[0] - unit * (unit * tangents[0]).sum(-1, keepdims=True)
    return unit, jnp.where(length > 0, moved / jnp.where(length > 0, length, 1), 0)


def _unit_and_length(keys: Array) -> tuple[Array, Array]:  # [m, k], [m, 1]
    largest = jnp.abs(keys).max(-1, keepdims=True)
    scaled = keys / jnp.where(largest > 0, largest, 1)  # no square vanishes or overflows
    length = jnp.sqrt((scaled**2).sum(-1, keepdims=True))
    return scaled / jnp.where(largest > 0, length, 1), largest * length


def solve_regressions(
    step: Array,  # [T]
    gate: Array,  # [T]
    keys: Array,  # [T, k]
    values: Array,  # [T, v]
    penalty: Array,  # []
) -> Array:  # [T, k, v]
    """Return (Σ βkkᵀ + λI)⁻¹ Σ βkvᵀ after every token, by Cholesky's factors; λ has no gate.

    Raises TypeError for half precision, which has no factors.
    """
    if keys.dtype.itemsize < 4:
        raise TypeError(f"keys are {keys.dtype}: Cholesky's factors are of float32 or float64")

    def add(sums: Any, row: tuple) -> tuple[tuple, tuple]:
        beta, g, k, v = row
        moment = g * sums[0] + outer(beta * k, k)
        sums = moment, g * sums[1] + outer(beta * k, v)
        return sums, sums

    identity = jnp.eye(keys.shape[1], dtype=keys.dtype)
    first = jnp.zeros_like(identity), jnp.zeros((len(identity), values.shape[1]), keys.dtype)
    _, (moments, products) = jax.lax.scan(add, first, (step, gate, keys, values))
    factors = jnp.linalg.cholesky(moments + penalty * identity[None])
    return jax.scipy.linalg.cho_solve((factors, True), products)


def _zero_state(writes: Writes) -> Array:  # [k, v]
    return jnp.zeros((writes.write.shape[1], writes.value.shape[1]), writes.value.dtype)


def _change(state: Array, w: Writes) -> Array:  # [k, v], one change -> [k, v]
    error = w.value if w.remove is None else w.value - w.remove @ state
    kept = state if w.gate is None else w.gate[:, None] * state
    return kept + outer(w.write, error)
