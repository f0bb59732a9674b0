"""How a prefix is trained: its start, its batches, and the recipe of A3's public code."""

from dataclasses import dataclass
from typing import Any

import jax
import optax
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.tasks.pools import Pool


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
    saves: int = 10

    def steps(self, m: int) -> int:
        """The optimizer's steps for a pool of m examples."""
        return self.saves * self.chunk(m)

    def chunk(self, m: int) -> int:
        """The steps between two saves: ``fit``'s chunk."""
        return max(1, self.epochs * m // (self.batch * self.saves))

    def save_steps(self, m: int) -> tuple[int, ...]:  # saves
        """The steps taken before each checkpoint that is used: of watch[:-1]."""
        return tuple(range(0, self.steps(m), self.chunk(m)))

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
