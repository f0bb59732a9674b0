"""Random numbers for a batch of prompts at once, the batch being their last axis.

One flat draw costs half of one draw a prompt under ``vmap``.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike


def chi(key: Array, degrees: Array, size: int, dtype: DTypeLike | None = None) -> Array:
    """χ_k for every whole number k ≥ 1 of ``degrees`` [r], once a prompt: [r, B].

    χ_k² / 2 = δ (1 + t)³ with δ = k/2 - 1/3 and t = N(0, 1) / 3√δ, accepted with probability
    exp(3δ (log(1 + t) - t + t²/2 - t³/3)), at most 1 for every δ > 0 (Marsaglia and Tsang 2000, who
    boost shapes below 1; k = 1 needs no boost: 84 % are accepted, at k = 20 99.7 %).
    """
    key_first, key_again = jax.random.split(key)
    delta = (degrees / 2 - 1 / 3).astype(dtype or float)[:, None]

    def again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """One more proposal a prompt, for the first of its variates that still lacks one."""
        count, t, lacking = state
        first = lacking & (jnp.cumsum(lacking, axis=0) == 1)
        delta_of_first = jnp.where(first, delta, 0).max(0, keepdims=True)
        proposed, accepted = _propose(jax.random.fold_in(key_again, count), delta_of_first)
        accepted = first & accepted
        return count + 1, jnp.where(accepted, proposed, t), lacking & ~accepted

    t, accepted = _propose(key_first, jnp.broadcast_to(delta, (len(degrees), size)))
    state = (jnp.zeros((), jnp.int32), t, ~accepted)
    _, t, _ = jax.lax.while_loop(lambda state: state[2].any(), again, state)
    return jnp.sqrt(2 * delta) * (1 + t) ** 1.5


def _propose(key: Array, delta: Array) -> tuple[Array, Array]:  # [r, B] -> t, whether accepted
    key_normal, key_uniform = jax.random.split(key)
    t = jax.random.normal(key_normal, delta.shape, delta.dtype) / (3 * jnp.sqrt(delta))
    u = jax.random.uniform(key_uniform, delta.shape, delta.dtype)
    log_ratio = 3 * delta * (jnp.log1p(t) - t + t**2 / 2 - t**3 / 3)
    return t, (t > -1) & (u < jnp.exp(log_ratio))


def subsets(
    key: Array, d: int, size: int, sparsity: int, active: ArrayLike | None = None
) -> Array:  # [d, B]
    """Masks of s coordinates chosen uniformly, among the first ``active`` if they suffice.

    The coordinates with the lowest random scores; ranks are counted, for sorting each prompt's
    takes longer than all other draws.
    """
    places = jnp.arange(d)[:, None]
    scores = jax.random.bits(key, (d, size), jnp.uint32) >> 2
    if active is not None:
        scores = jnp.where(places < active, scores, jnp.uint32(1 << 30))
    after = [(i < places).astype(scores.dtype) for i in range(d)]  # an equal score there is higher
    lower = [scores[i, None] < scores + after[i] for i in range(d)]
    return sum(mask.astype(jnp.int32) for mask in lower) < sparsity
