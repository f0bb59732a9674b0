"""Gradients of a small latent learner: a prefix, or the simplest of all, a weight vector (A3).

A prefix z [k, e] of trainable tokens stands where demonstrations would; the model is frozen. With
the squared error in place of A3's negative log-likelihood (docs/theory, "Gradient matching"),

    ℓ_i(z) = ½ (ŷ(z, x_i) - y_i)²,    g_i = [∇ℓ_i(z_1), ..., ∇ℓ_i(z_C)]

over the checkpoints z_1, ..., z_C of its training. ``training.fit`` trains it and keeps them:

    recipe = Recipe()
    training = Training(partial(batch_loss, forward, params),
                        lambda key: sample_batch(key, pool, recipe.batch),
                        recipe.optimizer(m), recipe.steps(m))
    run = fit(training, init(key, recipe.prefix_length, e), key, chunk=recipe.chunk(m),
              watch=lambda prefix: prefix)
    gradients = prefix_gradients(forward, params, run.history["watch"][:-1], pool)

Any other learner is a function loss(prefix, params, example) -> [] of any pytrees. ``mean_loss``
and ``example_gradients`` take it; ``batch_loss`` and ``prefix_gradients`` are these two with the
squared error above, and ``lm.prefix.loss`` is a decoder's cross-entropy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax
from jax import Array

from lsa_lab.arguments import choose_batch_size
from lsa_lab.models.trace import Trace, check_label_slot, predict
from lsa_lab.tasks.pools import Pool

Loss = Callable[[Array, Any, Any], Array]  # (prefix, params, example) -> []


def tokens(prefix: Array, x_query: Array) -> Array:  # [k, e], [d] -> [k+1, e]
    """Stack the prefix and the query: the prefix counts as demonstrations."""
    chex.assert_rank(prefix, 2, custom_message="prefix is [k, e]; use jax.vmap for checkpoints")
    d = prefix.shape[1] - 1
    chex.assert_shape(x_query, (d,), custom_message="x_query is [d], and a prefix [k, d+1]")
    return jnp.concatenate([prefix, jnp.pad(x_query, (0, 1))[None]])


def example_loss(
    forward: Callable[..., Trace],
    prefix: Array,  # [k, e]
    params: chex.ArrayTree,
    example: tuple[Array, Array],  # x [d], y []
) -> Array:  # []
    """Return ℓ(z) = ½ (ŷ - y)², ŷ the model's answer to x after the prefix."""
    x, y = example
    trace = forward(params, tokens(prefix, x))
    advice = "write a loss(prefix, params, example) for mean_loss and example_gradients"
    check_label_slot(trace, "example_loss", advice)
    return (predict(trace) - y) ** 2 / 2


def mean_loss(
    loss: Loss,
    params: chex.ArrayTree,
    prefix: Array,  # [k, D]
    examples: Any,  # every leaf [B, ...]
) -> Array:  # []
    """Return the mean loss of a batch's examples."""
    return jax.vmap(lambda example: loss(prefix, params, example))(examples).mean()


def example_gradients(
    loss: Loss,
    params: chex.ArrayTree,
    checkpoints: Array,  # [C, k, D]
    examples: Any,  # every leaf [m, ...]
    *,
    together: int | None = None,
) -> Array:  # [m, C·k·D]
    """Return every example's ∇loss at every checkpoint, side by side, for ``match``.

    A row holds one checkpoint after the other. ``together`` examples are differentiated at a time,
    256 on a CPU; fewer need less memory.
    """
    checkpoints = jnp.asarray(checkpoints)
    chex.assert_rank(checkpoints, 3, custom_message="checkpoints are [C, k, e]")

    def gradients(example: Any) -> Array:  # [C·k·D]
        slope = jax.grad(lambda prefix: loss(prefix, params, example))
        return jax.vmap(slope)(checkpoints).ravel()

    return jax.lax.map(gradients, examples, batch_size=choose_batch_size(together, 256))


def batch_loss(
    forward: Callable[..., Trace], params: chex.ArrayTree, prefix: Array, batch: Pool
) -> Array:  # []
    """Return the mean squared-error loss of a batch, each example in a prompt by itself."""
    return mean_loss(partial(example_loss, forward), params, prefix, (batch.x, batch.y))


def prefix_gradients(
    forward: Callable[..., Trace],
    params: chex.ArrayTree,
    checkpoints: Array,  # [C, k, e]
    pool: Pool,
) -> Array:  # [m, C·k·e]
    """Return ``example_gradients`` of the squared error."""
    return example_gradients(partial(example_loss, forward), params, checkpoints, (pool.x, pool.y))


def linear_loss(weights: Array, batch: Pool) -> Array:  # [d] -> []
    """Return the mean of ½ (w·x - y)² over a batch."""
    return ((batch.x @ weights - batch.y) ** 2).mean() / 2


def linear_gradients(weights: Array, pool: Pool) -> Array:  # [C, d] -> [m, C·d]
    """Return (w_c·x_i - y_i) x_i, the gradients of the linear proxy at its checkpoints.

    The gradients of a prefix of masked linear attention are a linear map of these: its prediction
    is w(z)·x, hence ∇ℓ_i(z) = J(z)ᵀ (w(z)·x_i - y_i) x_i with J = ∂w/∂z (derived here; docs/theory,
    "Checkpoints determine moments", "Prefix gradients").
    """
    weights = jnp.asarray(weights)
    d = pool.x.shape[1]
    chex.assert_shape(weights, (None, d), custom_message="weights are [C, d], d as in the pool")
    residuals = pool.x @ weights.T - pool.y[:, None]  # [m, C]
    return (residuals[:, :, None] * pool.x[:, None]).reshape(len(pool.x), -1)


@dataclass(frozen=True)
class Recipe:
    """The training of a prefix in A3's public code, where the text is silent or differs.

    The text asks for the gradients of every epoch. The code saves after the first step and then ten
    times, evenly, and leaves out the last: ten checkpoints, whatever the epochs. The text makes 32
    swaps; the code at most 1000, and 3 to select for one query, and stops at a gain below 1e-6.
    Betas of 0.9 and 0.95 go to the trainer, but its DeepSpeed section names AdamW and a learning
    rate only, so the optimiser's default betas may have been in force. The loss is the sum over the
    answer's tokens, in three tasks the mean, in half precision; examples that are too long are
    dropped, and at most 50 000 used.

    Here the warm-up is linear, ``fit`` watches before the first step and not after it, batches are
    drawn with replacement, and the steps are rounded down to a multiple of the saves.
    """

    prefix_length: int = 4
    epochs: int = 10
    batch: int = 64
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    warm_up: float = 0.1  # of the steps; constant after it
    saves: int = 10  # before steps 0, chunk, 2 chunk, ...: watch[:-1]

    def steps(self, m: int) -> int:
        """Return the optimiser's steps for a pool of m examples."""
        return self.saves * self.chunk(m)

    def chunk(self, m: int) -> int:
        """Return the steps between two saves: ``fit``'s chunk."""
        return max(1, self.epochs * m // (self.batch * self.saves))

    def optimizer(self, m: int) -> optax.GradientTransformation:
        """Return AdamW without decay; its rate rises from 0 over the warm-up and stays."""
        warm = max(1, int(self.warm_up * self.steps(m)))
        rate = optax.linear_schedule(0.0, self.learning_rate, warm)
        return optax.adamw(rate, *self.betas, weight_decay=0.0)


def init(key: Array, prefix_length: int, e: int) -> Array:  # [k, e]
    """Draw Gaussian tokens. At zero the gradient of linear attention is zero too."""
    return 0.3 * jax.random.normal(key, (prefix_length, e))


def sample_batch(key: Array, examples: Any, size: int) -> Any:  # every leaf [m, ...] -> [size, ...]
    """Draw ``size`` examples (x, y) of a pool with replacement, as the ``sample`` of ``fit``."""
    if isinstance(examples, Pool):
        examples = Pool(examples.x, examples.y)
    rows = jax.random.randint(key, (size,), 0, len(jax.tree.leaves(examples)[0]))
    return jax.tree.map(lambda leaf: leaf[rows], examples)
