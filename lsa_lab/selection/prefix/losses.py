"""Losses of a prefix, of prompts or of anything else, and each example's gradient of them."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_at_least, side_by_side
from lsa_lab.models.trace import Trace, check_label_slot, predict
from lsa_lab.tasks.pools import Pool

Loss = Callable[[Array, Any, Any], Array]  # (prefix, params, example) -> []


def tokens(prefix: Array, x_query: Array, demonstrations: Array | None = None) -> Array:
    """[prefix; demonstrations; query], [k+n+1, e]: the prefix counts among the demonstrations."""
    chex.assert_rank(prefix, 2, custom_message="prefix is [k, e]; use jax.vmap for checkpoints")
    e = prefix.shape[1]
    chex.assert_shape(x_query, (e - 1,), custom_message="x_query is [d], and a prefix [k, d+1]")
    rows = [prefix, jnp.pad(x_query, (0, 1))[None]]
    if demonstrations is not None:
        chex.assert_shape(demonstrations, (None, e), custom_message="demonstrations are [n, e]")
        rows.insert(1, demonstrations)
    return jnp.concatenate(rows)


def example_loss(
    forward: Callable[..., Trace],
    params: chex.ArrayTree,
    prefix: Array,  # [k, e]
    x: Array,  # [d]
    y: Array,  # []
    demonstrations: Array | None = None,  # [n, e]
) -> Array:  # []
    """ℓ(z) = ½ (ŷ - y)², ŷ the model's answer to x after the prefix."""
    trace = forward(params, tokens(prefix, x, demonstrations))
    advice = "give mean_loss and example_gradients a loss(prefix, params, example) of your own"
    check_label_slot(trace, "example_loss", advice)
    return (predict(trace) - y) ** 2 / 2


def mean_loss(
    loss: Loss,
    params: chex.ArrayTree,
    prefix: Array,  # [k, D]
    examples: Any,  # every leaf [B, ...]
    *,
    together: int | None = None,
) -> Array:  # []
    """The mean loss of a batch's examples: all at once, or ``together`` of them at a time.

    In parts its derivative too is taken in the memory of one part: each is run again for it.
    """

    def of_example(example: Any) -> Array:
        return loss(prefix, params, example)

    if together is None:
        return jax.vmap(of_example)(examples).mean()
    check_at_least(together, "together")
    return jax.lax.map(jax.checkpoint(of_example), examples, batch_size=together).mean()


def example_gradients(
    loss: Loss,
    params: chex.ArrayTree,
    checkpoints: Array,  # [C, k, D]
    examples: Any,  # every leaf [m, ...]
    *,
    together: int | None = None,
) -> Array:  # [m, C·k·D]
    """Every example's ∇loss at every checkpoint, side by side: what ``match`` takes.

    ``together`` examples, 256 on a CPU, are differentiated at a time: memory.
    """
    width = side_by_side(together, 256)
    checkpoints = jnp.asarray(checkpoints)
    chex.assert_rank(checkpoints, 3, custom_message="checkpoints are [C, k, e]")

    def gradients(example: Any) -> Array:  # [C·k·D]
        def of_prefix(prefix: Array) -> Array:
            return loss(prefix, params, example)

        return jax.vmap(jax.grad(of_prefix))(checkpoints).ravel()

    return jax.lax.map(gradients, examples, batch_size=width)


def batch_loss(
    forward: Callable[..., Trace],
    params: chex.ArrayTree,
    prefix: Array,  # [k, e]
    batch: Pool,
    demonstrations: Array | None = None,  # [n, e]
) -> Array:  # []
    """The mean loss of a batch's examples, each in a prompt of its own: what ``fit`` minimises."""
    loss = _squared_error(forward, demonstrations)
    return mean_loss(loss, params, prefix, (batch.x, batch.y))


def prefix_gradients(
    forward: Callable[..., Trace],
    params: chex.ArrayTree,
    checkpoints: Array,  # [C, k, e]
    pool: Pool,
    demonstrations: Array | None = None,  # [n, e]
    *,
    together: int | None = None,
) -> Array:  # [m, C·k·e]
    """Every example's gradient at every checkpoint, checkpoint after checkpoint."""
    loss = _squared_error(forward, demonstrations)
    examples = (pool.x, pool.y)
    return example_gradients(loss, params, checkpoints, examples, together=together)


def _squared_error(forward: Callable[..., Trace], demonstrations: Array | None) -> Loss:
    def loss(prefix: Array, params: Any, example: tuple[Array, Array]) -> Array:
        return example_loss(forward, params, prefix, *example, demonstrations)

    return loss


def linear_loss(weights: Array, batch: Pool) -> Array:  # [d] -> []
    """The mean of ½ (w·x - y)² over a batch."""
    return ((batch.x @ weights - batch.y) ** 2).mean() / 2


def linear_gradients(weights: Array, pool: Pool) -> Array:  # [C, d] -> [m, C·d]
    """(w_c·x_i - y_i) x_i: the gradients of the linear proxy at its checkpoints.

    docs/theory, "Checkpoints determine moments", "Prefix gradients".

    What a prefix of masked linear attention adds is a linear map of these: its prediction is
    w(z)·x, hence ∇ℓ_i(z) = J(z)ᵀ (w(z)·x_i - y_i) x_i with J = ∂w/∂z (derived here).
    """
    weights = jnp.asarray(weights)
    d = pool.x.shape[1]
    chex.assert_shape(weights, (None, d), custom_message="weights are [C, d], d as in the pool")
    residuals = pool.x @ weights.T - pool.y[:, None]  # [m, C]
    return (residuals[:, :, None] * pool.x[:, None]).reshape(len(pool.x), -1)
