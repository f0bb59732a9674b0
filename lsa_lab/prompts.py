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
from jax.typing import ArrayLike

from lsa_lab.scaling import length

_FEW = 64  # demonstrations: above, a sum of so many terms takes long to compile


class Prompt(flax.struct.PyTreeNode):
    """Demonstrations (x_i, y_i) and a query whose label is to be predicted."""

    x: Array  # [n, d]
    y: Array  # [n]
    x_query: Array  # [d]
    y_query: Array  # []

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, to_native_order(value))


def to_native_order(value: Any) -> Any:
    """Return a NumPy array in this machine's byte order, which JAX requires; others as they are."""
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
    """Return the merged tokens e_i = [x_i, y_i] and, last, the query [x_query, 0].

    The model writes its prediction to the query's label slot (docs/theory, "Prompts and tokens").
    """
    check(prompt)
    demonstrations = jnp.concatenate([prompt.x, prompt.y[:, None]], axis=1)
    query = jnp.concatenate([prompt.x_query, jnp.zeros_like(prompt.y[:1], shape=(1,))])
    return jnp.concatenate([demonstrations, query[None]])


def interleaved_tokens(prompt: Prompt) -> Array:  # [2n+1, e]
    """Return x_1, y_1, x_2, ..., x_query as tokens [x, 0] and [0, y] (Garg et al. 2208.01066)."""
    check(prompt)
    n, d = prompt.x.shape
    covariates = jnp.pad(prompt.x, ((0, 0), (0, 1)))
    labels = jnp.pad(prompt.y[:, None], ((0, 0), (d, 0)))
    pairs = jnp.stack([covariates, labels], axis=1).reshape(2 * n, d + 1)
    return jnp.concatenate([pairs, jnp.pad(prompt.x_query, (0, 1))[None]])


def bound_tokens(prompt: Prompt) -> Array:  # [n+1, 2d+1]
    """Return the tokens [x_t, x_{t-1}, y_{t-1}]: zeros before the first pair, the query's x last.

    A layer that writes the pair before it reads with x_t predicts at every x from the earlier
    pairs.
    """
    check(prompt)
    queries = jnp.concatenate([prompt.x, prompt.x_query[None]])
    pairs = jnp.concatenate([prompt.x, prompt.y[:, None]], axis=1)
    return jnp.concatenate([queries, jnp.pad(pairs, ((1, 0), (0, 0)))], axis=1)


def second_moment(prompt: Prompt) -> Array:  # [e, e]
    """Return S_0 = (1/n) Σ_i e_i e_iᵀ of the demonstrations (docs/theory, "Prompts and tokens")."""
    demonstrations = tokens(prompt)[:-1]
    _check_demonstrations(prompt.x.shape[0])
    return demonstrations.T @ demonstrations / demonstrations.shape[0]


def second_moments(batch: Prompt) -> Array:  # [e, e, B]
    """Return S_0 of every prompt of a batch (leading axis B).

    The sum over few demonstrations is written out, and a barrier has it formed once for all
    readers: on CPU ``vmap`` of ``second_moment`` takes seven times as long at n = 20.
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


def normalise(prompt: Prompt) -> tuple[Prompt, Array]:  # Prompt, []
    """Return the prompt in its own units, and the unit c of its labels.

    x / a with a² = Σ_ij x_ij²/nd, y / c with c² = Σ_i y_i²/n. A prediction for this prompt, times
    c, is one for the original. Linear attention is a polynomial of degree 3^L in its prompt; here
    S_0 has trace d + 1 whatever was drawn. Labels that are all zero stay so (modelled on the
    normalised r of docs/theory, "Preprocess then optimise").
    """
    check(prompt)
    a, c = (_rms(values) for values in (prompt.x, prompt.y))
    return Prompt(prompt.x / a, prompt.y / c, prompt.x_query / a, prompt.y_query / c), c


def _rms(values: Array) -> Array:  # []
    """Return the root mean square, 1 where all values are zero."""
    size = length(values.reshape(-1)) / values.size**0.5
    return jnp.where(size > 0, size, 1)


def pad_covariates(prompt: Prompt, width: int) -> Prompt:
    """Append ``width`` covariates that are zero, as memory for a model."""
    check(prompt)
    if width < 0:
        raise ValueError(f"width = {width}: it is at least 0")
    x, x_query = jnp.pad(prompt.x, ((0, 0), (0, width))), jnp.pad(prompt.x_query, (0, width))
    return prompt.replace(x=x, x_query=x_query)


def repeat_demonstrations(prompt: Prompt, count: ArrayLike) -> Prompt:
    """Repeat the first ``count`` demonstrations, which may be traced, until there are n.

    A model that reads averages over demonstrations cannot tell this from a prompt of ``count``, if
    that divides n (docs/theory, "Symmetries of linear attention"): one program trains on prompts of
    several lengths.
    """
    check(prompt)
    n = prompt.x.shape[0]
    if not isinstance(count, jax.core.Tracer) and not 1 <= int(np.asarray(count)) <= n:
        raise ValueError(f"count = {count} of n = {n} demonstrations: choose 1 to {n}")
    rows = jnp.arange(n) % jnp.asarray(count, int)
    return prompt.replace(x=prompt.x[rows], y=prompt.y[rows])
