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

Any other learner comes as loss(prefix, params, example) -> [], whatever a prefix and an example
are: ``mean_loss`` in the place of ``batch_loss`` and ``example_gradients`` of ``prefix_gradients``,
which are these two with the squared error above (``lm.prefix.loss`` is a decoder's cross-entropy).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import DTypeLike

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


@dataclass(frozen=True)
class Recipe:
    """How A3's public code trains its prefix, where its text is silent or says otherwise.

    The text asks for the gradients of every epoch; the code saves after the first step and then ten
    times, evenly, and leaves out the last: ten checkpoints, whatever the epochs. The text's swaps
    are 32; the code's 1000 at most, 3 where it selects for one query, and they stop at a gain below
    1e-6. Betas of 0.9 and 0.95 are given to the trainer; its DeepSpeed section names AdamW and a
    learning rate only, so the optimizer's own betas may have been in force. The loss is the sum
    over the answer's tokens, in three tasks the mean; half precision; examples that are too long
    are dropped, and at most 50 000 used.

    Here: the warm-up is linear, ``fit`` watches before the first step and not after it, batches are
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
        """The optimizer's steps for a pool of m examples."""
        return self.saves * self.chunk(m)

    def chunk(self, m: int) -> int:
        """The steps between two saves: ``fit``'s chunk."""
        return max(1, self.epochs * m // (self.batch * self.saves))

    def optimizer(self, m: int) -> optax.GradientTransformation:
        """AdamW without decay; the rate rises from 0 over the warm-up and stays."""
        warm = max(1, int(self.warm_up * self.steps(m)))
        rate = optax.linear_schedule(0.0, self.learning_rate, warm)
        return optax.adamw(rate, *self.betas, weight_decay=0.0)


def init(
    key: Array, prefix_length: int, e: int, scale: float = 0.3, dtype: DTypeLike | None = None
) -> Array:  # [k, e]
    """Gaussian tokens. Not zero: linear attention is quadratic in its prefix, and stays there."""
    return scale * jax.random.normal(key, (prefix_length, e), dtype)


def sample_batch(key: Array, examples: Any, size: int) -> Any:  # every leaf [m, ...] -> [size, ...]
    """``size`` examples drawn with replacement, of a pool their (x, y): ``fit``'s sample."""
    if isinstance(examples, Pool):
        examples = Pool(examples.x, examples.y)
    rows = jax.random.randint(key, (size,), 0, len(jax.tree.leaves(examples)[0]))
    return jax.tree.map(lambda leaf: leaf[rows], examples)
