"""Random numbers for a batch of prompts at once, with the batch on their last axis.

One flat draw costs half of one draw a prompt under ``vmap``.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike


def normal(key: Array, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Array:
    """Draw N(0, 1): the numbers of ``jax.random.normal``, in about half of its time on a CPU.

    There jax's Threefry is a loop that no vector unit runs; here its rounds are written out. The
    barrier stops XLA from drawing the numbers again for each of their readers.
    """
    kind = jax.dtypes.canonicalize_dtype(dtype or float)
    if kind not in _LAYOUTS or not _has_written_rounds(key, math.prod(shape)):
        return _barrier(jax.random.normal(key, shape, dtype))
    shift, exponent = _LAYOUTS[kind]
    first, second = _threefry(key, math.prod(shape))
    bits = first ^ second
    if kind == np.float64:
        bits = (first.astype(jnp.uint64) << np.uint64(32)) | second.astype(jnp.uint64)
    bits = (_barrier(bits) >> shift) | exponent
    unit, two = kind.type(1), kind.type(2)
    low = np.nextafter(-unit, kind.type(0))
    uniform = (jax.lax.bitcast_convert_type(bits, kind) - unit) * (unit - low) + low
    normals = np.sqrt(two) * jax.lax.erf_inv(jnp.maximum(low, uniform))
    return _barrier(normals).reshape(shape)


_barrier = jax.lax.optimization_barrier
# A float's random fraction begins after these bits, and its exponent makes it one of [1, 2).
_LAYOUTS = {
    np.dtype(np.float32): (np.uint32(9), np.uint32(0x3F800000)),
    np.dtype(np.float64): (np.uint64(12), np.uint64(0x3FF << 52)),
}
_TURNS = (13, 15, 26, 6, 17, 29, 16, 24)


def _has_written_rounds(key: Array, count: int) -> bool:
    """Return whether the rounds here give jax's numbers and are faster."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    flags: Any = jax.config
    impl = str(jax.random.key_impl(key)) if typed else flags.jax_default_prng_impl
    threefry = impl in ("fry", "threefry2x32") and flags.jax_threefry_partitionable
    return threefry and count < 2**32 and jax.default_backend() == "cpu"


def _threefry(key: Array, count: int) -> tuple[Array, Array]:  # [count] x 2
    """Return Threefry-2x32 of 20 rounds at the counters 0, 1, ... (Salmon et al. 2011)."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    k = jax.random.key_data(key) if typed else key
    keys = (k[0], k[1], k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
    x, y = jnp.broadcast_to(keys[0], (count,)), keys[1] + jnp.arange(count, dtype=jnp.uint32)
    for i in range(20):
        x, turn = x + y, _TURNS[i % 8]
        y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        if i % 4 == 3:
            j = i // 4 + 1
            x, y = x + keys[j % 3], y + keys[(j + 1) % 3] + np.uint32(j)
    return x, y


@functools.partial(jax.jit, static_argnames=("n", "e", "size", "dtype"))
def wishart_factor(
    key: Array, n: int, e: int, size: int, dtype: DTypeLike | None = None
) -> Array:  # [e, k, B]
    """Draw F with F Fᵀ distributed as Z Zᵀ, Z [e, n] ~ N(0, 1): Wishart.

    F is Bartlett's factor [e, e], lower triangular with χ_{n-j} on the diagonal and N(0, 1) below
    (Bartlett 1933), or Z itself where n < 2e, which takes no longer.
    """
    if n < 2 * e:
        return normal(key, (e, n, size), dtype)
    key_below, key_chi = jax.random.split(key)
    below = normal(key_below, (e * (e - 1) // 2, size), dtype)
    diagonal = chi(key_chi, n - jnp.arange(e), size, below.dtype)
    zeros, rows, start = jnp.zeros_like(diagonal), [], 0
    for i in range(e):
        rows.append(jnp.concatenate([below[start : start + i], diagonal[i, None], zeros[i + 1 :]]))
        start += i
    return jnp.stack(rows)


def chi(key: Array, degrees: Array, size: int, dtype: DTypeLike | None = None) -> Array:
    """Draw χ_k for every whole number k ≥ 1 of ``degrees`` [r], once a prompt: [r, B].

    χ_k² / 2 = δ (1 + t)³ with δ = k/2 - 1/3 and t = N(0, 1) / 3√δ, accepted with probability
    exp(3δ (log(1 + t) - t + t²/2 - t³/3)), at most 1 for every δ > 0 (Marsaglia and Tsang 2000, who
    boost shapes below 1; k = 1 needs no boost: 84 % are accepted, at k = 20 99.7 %).
    """
    key_first, key_again = jax.random.split(key)
    delta = (degrees / 2 - 1 / 3).astype(dtype or float)[:, None]

    def propose_again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """Propose once more a prompt, for the first of its numbers that is still rejected."""
        count, t, lacking = state
        first = _mark_first(lacking)
        first_delta = jnp.where(first, delta, 0).max(0, keepdims=True)
        proposed, accepted = _propose(jax.random.fold_in(key_again, count), first_delta)
        accepted = first & accepted
        return count + 1, jnp.where(accepted, proposed, t), lacking & ~accepted

    t, accepted = _propose(key_first, jnp.broadcast_to(delta, (len(degrees), size)))
    state = (jnp.zeros((), jnp.int32), t, ~accepted)
    _, t, _ = jax.lax.while_loop(lambda state: state[2].any(), propose_again, state)
    return jax.lax.optimization_barrier(jnp.sqrt(2 * delta * (1 + t)) * (1 + t))


def _propose(key: Array, delta: Array) -> tuple[Array, Array]:  # [r, B] -> t, whether accepted
    key_normal, key_uniform = jax.random.split(key)
    t = normal(key_normal, delta.shape, delta.dtype) / (3 * jnp.sqrt(delta))
    u = jax.random.uniform(key_uniform, delta.shape, delta.dtype)
    log_ratio = 3 * delta * (jnp.log1p(t) - t + t**2 / 2 - t**3 / 3)
    return t, (t > -1) & (u < jnp.exp(log_ratio))


def _mark_first(mask: Array) -> Array:  # [r, B] -> the same
    """Return the first True of each column; a cumulative sum takes r² steps on CPU."""
    earlier, rows = jnp.zeros_like(mask[0]), []
    for row in mask:
        rows.append(row & ~earlier)
        earlier = earlier | row
    return jnp.stack(rows)


def subsets(key: Array, d: int, size: int, sparsity: int) -> Array:  # [d, B]
    """Draw masks of s coordinates, uniformly: those with the lowest random scores.

    Ranks are counted, because sorting the scores of each prompt takes longer than all other draws.
    """
    places = jnp.arange(d)[:, None]
    scores = jax.random.bits(key, (d, size), jnp.uint32) >> 1
    after = [(i < places).astype(scores.dtype) for i in range(d)]  # an equal score there is higher
    lower = [scores[i, None] < scores + after[i] for i in range(d)]
    return jnp.asarray(sum(mask.astype(jnp.int32) for mask in lower)) < sparsity


def covariance_root(covariance: Array) -> Array:  # [..., d, d] -> the same
    """Return C with C Cᵀ = covariance: Cholesky's factor or, for a concrete singular one, a factor
    from eigenvalues. A traced covariance has to be positive definite."""
    try:
        if not isinstance(covariance, jax.core.Tracer):
            np.linalg.cholesky(np.asarray(covariance))  # jax's has NaN where this raises
        return jnp.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = jnp.linalg.eigh(covariance)
        return vectors * jnp.sqrt(jnp.maximum(values, 0))[..., None, :]
