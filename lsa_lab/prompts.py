"""A prompt, its tokens, and its second moment.

>>> prompt = Prompt(x=jnp.eye(2), y=jnp.array([3.0, 4.0]), x_query=jnp.ones(2), y_query=7.0)
>>> print(tokens(prompt))
[[1. 0. 3.]
 [0. 1. 4.]
 [1. 1. 0.]]
>>> print(second_moment(prompt))
[[ 0.5  0.   1.5]
 [ 0.   0.5  2. ]
 [ 1.5  2.  12.5]]
"""

from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_FEW = 64  # demonstrations: above, a sum of so many terms takes long to compile


class Prompt(flax.struct.PyTreeNode):
    """Demonstrations (x_i, y_i) and a query whose label is to be predicted."""

    x: Array  # [n, d]
    y: Array  # [n]
    x_query: Array  # [d]
    y_query: Array  # []

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, in_native_order(value))


def in_native_order(value: Any) -> Any:
    """Return an array of NumPy in this machine's order of bytes, which JAX asks for, and any other
    value as it is."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


def check(prompt: Prompt) -> None:
    """Raise unless the four arrays of one prompt fit together."""
    chex.assert_rank(
        prompt.x, 2, custom_message="x holds one prompt [n, d]; use jax.vmap for a batch of prompts"
    )
    n, d = prompt.x.shape
    chex.assert_shape(prompt.y, (n,), custom_message="y has one label for each row of x")
    chex.assert_shape(prompt.x_query, (d,), custom_message="x_query is one more row of x")
    chex.assert_shape(prompt.y_query, (), custom_message="y_query is a scalar")


def tokens(prompt: Prompt) -> Array:  # [n+1, e]
    """The merged tokens e_i = [x_i, y_i] and, last, the query [x_query, 0].

    The query's label slot starts at zero; the model writes its prediction there (docs/theory,
    "Prompts and tokens").
    """
    check(prompt)
    demonstrations = jnp.concatenate([prompt.x, prompt.y[:, None]], axis=1)
    query = jnp.concatenate([prompt.x_query, jnp.zeros_like(prompt.y[:1], shape=(1,))])
    return jnp.concatenate([demonstrations, query[None]])


def interleaved_tokens(prompt: Prompt) -> Array:  # [2n+1, e]
    """The tokens x_1, y_1, x_2, ..., x_query, as [x, 0] and [0, y] (Garg et al. 2208.01066)."""
    check(prompt)
    n, d = prompt.x.shape
    covariates = jnp.pad(prompt.x, ((0, 0), (0, 1)))
    labels = jnp.pad(prompt.y[:, None], ((0, 0), (d, 0)))
    pairs = jnp.stack([covariates, labels], axis=1).reshape(2 * n, d + 1)
    return jnp.concatenate([pairs, jnp.pad(prompt.x_query, (0, 1))[None]])


def bound_tokens(prompt: Prompt) -> Array:  # [n+1, 2d+1]
    """The tokens [x_t, x_{t-1}, y_{t-1}]: zeros before the first pair, and the query's x last.

    Each holds the pair that is to be written and the covariates that are to be answered: a layer
    that writes before it reads predicts at every x from the pairs before it.
    """
    check(prompt)
    queries = jnp.concatenate([prompt.x, prompt.x_query[None]])
    pairs = jnp.concatenate([prompt.x, prompt.y[:, None]], axis=1)
    return jnp.concatenate([queries, jnp.pad(pairs, ((1, 0), (0, 0)))], axis=1)


def second_moment(prompt: Prompt) -> Array:  # [e, e]
    """S_0 = (1/n) Σ_i e_i e_iᵀ over the demonstrations (docs/theory, "Prompts and tokens")."""
    demonstrations = tokens(prompt)[:-1]
    _check_demonstrations(prompt.x.shape[0])
    return demonstrations.T @ demonstrations / demonstrations.shape[0]


def second_moments(batch: Prompt) -> Array:  # [e, e, B]
    """S_0 of every prompt of a batch (leading axis B), which is the last axis of the moments.

    Written out over the demonstrations while they are few, and formed once for all readers: on CPU
    a ``vmap`` of ``second_moment`` takes seven times as long at n = 20.
    """
    chex.assert_rank(batch.x, 3, custom_message="x of a batch is [B, n, d]")
    chex.assert_shape(batch.y, batch.x.shape[:2], custom_message="y of a batch is [B, n]")
    _check_demonstrations(batch.x.shape[1])
    if batch.x.shape[1] > _FEW:
        return jax.lax.optimization_barrier(jax.vmap(second_moment, out_axes=-1)(batch))
    rows = jnp.concatenate([batch.x.transpose(2, 1, 0), batch.y.T[None]])  # [e, n, B]
    rows, n = jax.lax.optimization_barrier(rows), rows.shape[1]
    moments = sum(rows[:, None, i] * rows[None, :, i] for i in range(n)) / n
    return jax.lax.optimization_barrier(moments)


def _check_demonstrations(n: int) -> None:
    if n == 0:
        raise ValueError("x has no rows: a second moment is a mean over demonstrations")


def normalised(prompt: Prompt) -> tuple[Prompt, Array]:  # Prompt, []
    """The prompt in units of its own: x / a with a² = Σ_ij x_ij²/nd, y / c with c² = Σ_i y_i²/n.

    Returns c too: a prediction for this prompt, times c, is one for the other. A stack of linear
    attention, a polynomial of degree 3^L in its prompt, then reads bounded moments: S_0 has trace
    d + 1 whatever was drawn. Labels that are all zero stay so (modelled on the normalised r of
    docs/theory, "Preprocess then optimise").
    """
    check(prompt)
    a, c = (_size(values) for values in (prompt.x, prompt.y))
    return Prompt(prompt.x / a, prompt.y / c, prompt.x_query / a, prompt.y_query / c), c


def _size(values: Array) -> Array:  # []
    """The root mean square of what is not all zero, else 1."""
    size = length(values.reshape(-1)) / values.size**0.5
    return jnp.where(size > 0, size, 1)


def with_scratch(prompt: Prompt, width: int) -> Prompt:
    """The prompt with ``width`` more covariates, all zero: room for what the layers work out."""
    check(prompt)
    if width < 0:
        raise ValueError(f"width = {width}: scratch has a width of at least 0")
    wider = [jnp.pad(prompt.x, ((0, 0), (0, width))), jnp.pad(prompt.x_query, (0, width))]
    return prompt.replace(x=wider[0], x_query=wider[1])


def near_one(values: Array, axis: int | tuple[int, ...] | None = None) -> tuple[Array, Array]:
    """Numbers brought near 1 by a power of two: no bit is lost, and squares keep all of theirs.

    It is (v / 2^k, k), the largest of |v| / 2^k along ``axis`` in [1/2, 1); k is 0 where all are 0.

    The axis stays, of length 1, in k: ``times_power`` undoes it. k has no derivative.
    """
    largest = jnp.abs(values).max(axis, keepdims=True)
    exponents = jnp.frexp(jax.lax.stop_gradient(largest))[1]
    return times_power(values, -exponents), exponents


def times_power(values: Array, exponents: Array) -> Array:
    """Return 2^k v, exact wherever it is a number; of one rank.

    It is a product, whose slope is 2^k at 0 as well, where that of ``jnp.ldexp`` is 1.
    """
    half = exponents // 2  # 2^k itself may overflow
    one = jnp.ones_like(exponents, jnp.result_type(values))
    return values * jnp.ldexp(one, half) * jnp.ldexp(one, exponents - half)


def length(values: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """|v| along ``axis``: no square over- or underflows, and the slope at 0 is 0."""
    scaled, exponents = near_one(values, axis)
    square = jnp.sum(scaled**2, axis, keepdims=True)
    # Two selections: the derivative of the square root at 0 must not be formed.
    root = jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))  # NaN: NaN
    return times_power(root, exponents).squeeze(axis)
