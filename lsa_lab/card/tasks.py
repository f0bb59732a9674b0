"""The tasks of a card, and how training prompts are drawn.

    regression  y_t = w·x_t + ε_t with w ~ N(0, I/d), x ~ N(0, I) and ε ~ N(0, σ²)
    drift       the same, and w moves with a half-life of 2d demonstrations
    nested      the same, and in half of the prompts w uses the first d/4 coordinates alone
    recall      n/4 pairs of a random key with |x|² = d and one of four values, then stored keys
                with their values (MQAR: Arora et al. 2312.04927)
    bigrams     x_t = √d e_s for the symbol s of a Markov chain, whose table has Dirichlet rows of
                concentration 1/d; y_t tells whether symbol 0 follows, and the target is its
                probability, minus 1/d

Targets have mean 0 and variance 1. All prompts fit the tokens [x_t, x_{t-1}, y_{t-1}].
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.prompts import Prompt
from lsa_lab.tasks import markov
from lsa_lab.tasks.linear import LinearTask, sample_batch

TASKS = {  # what the labels are, for the page; and the baseline, which the Bayes rule beats
    "regression": ("y is linear in x plus noise", ""),
    "drift": ("y is linear in x plus noise with weights that drift", "ridge"),
    "recall": ("y is a value stored for x", "ridge"),
    "nested": (
        "y is linear in x plus noise, in half of the prompts in few coordinates",
        "the best rule that is linear in the labels",
    ),
    "bigrams": (
        "x is a symbol of a Markov chain and y tells whether the first symbol follows",
        "the frequency of symbol 0",
    ),
}
LEVELS = np.array([-3, -1, 1, 3]) / 5**0.5  # the values of recall


def half_life_gate(d: int) -> float:
    """Return the factor of w from one demonstration to the next, with a half-life of 2d."""
    return 0.5 ** (1 / (2 * d))


def count_simple(d: int) -> int:
    """Return the number of coordinates of the smaller class of nested weights, d/4."""
    return max(d // 4, 1)


def make_sampler(tier: Any, table: np.ndarray | None, dtype: Any) -> Callable[[Array], Prompt]:
    """Return the function from a key to a batch of training prompts of a Tier.

    The weights of regression are rows of the table [k, d], if there is one.
    """
    if tier.task in SYMBOLIC:
        return lambda key: SYMBOLIC[tier.task](key, tier.batch, tier.n, tier.d, dtype)[0]
    drift = half_life_gate(tier.d) if tier.task == "drift" else None
    scales: dict[str, Any] = dict(noise_std=tier.noise_std, weight_std=tier.d**-0.5, drift=drift)
    task = LinearTask(tier.n, tier.d, dtype=dtype, **scales)
    if table is None and tier.task != "nested":
        return lambda key: sample_batch(key, task, tier.batch)
    noise_task = task.replace(weight_std=0.0)  # its labels are noise

    def sample(key: Array) -> Prompt:
        key_prompts, key_weights = jax.random.split(key)
        batch = sample_batch(key_prompts, noise_task, tier.batch)
        if table is not None:
            rows = jax.random.randint(key_weights, (tier.batch,), 0, len(table))
            weights = jnp.asarray(table, dtype)[rows]
        else:
            key_class, key_values = jax.random.split(key_weights)
            is_simple = jax.random.bernoulli(key_class, 0.5, (tier.batch, 1))
            counts = jnp.where(is_simple, count_simple(tier.d), tier.d)
            values = jax.random.normal(key_values, (tier.batch, tier.d), dtype)
            values = values / jnp.sqrt(counts.astype(dtype))
            weights = jnp.where(jnp.arange(tier.d)[None] < counts, values, 0)
        y = batch.y + jnp.einsum("bnd,bd->bn", batch.x, weights)
        return batch.replace(y=y, y_query=jnp.einsum("bd,bd->b", batch.x_query, weights))

    return sample


def sample_recall(key: Array, size: int, n: int, d: int, dtype: Any) -> tuple[Prompt, Array]:
    """Draw prompts of recall and their targets [B, n+1], which are the labels."""
    key_keys, key_values, key_queries = jax.random.split(key, 3)
    count = n // 4
    keys = jax.random.normal(key_keys, (size, count, d), dtype)
    keys *= jnp.sqrt(d / (keys**2).sum(-1, keepdims=True))
    values = jax.random.choice(key_values, jnp.asarray(LEVELS, dtype), (size, count))
    stored = jnp.broadcast_to(jnp.arange(count)[None], (size, count))
    queries = jax.random.randint(key_queries, (size, n + 1 - count), 0, count)
    order = jnp.concatenate([stored, queries.astype(stored.dtype)], 1)
    x = jnp.take_along_axis(keys, order[..., None], 1)
    y = jnp.take_along_axis(values, order, 1)
    return Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1]), y


def sample_bigrams(key: Array, size: int, n: int, d: int, dtype: Any) -> tuple[Prompt, Array]:
    """Draw prompts of bigrams, and their targets [B, n+1].

    The variance of a target is half of that of a label, for the rows have concentration 1.
    """
    task = markov.MarkovTask(n + 1, d, jnp.asarray(1 / d, dtype), dtype)
    chains = jax.vmap(markov.sample, (0, None))(jax.random.split(key, size), task)
    symbols, unit = chains.symbols[:, :-1], ((1 - 1 / d) / d / 2) ** 0.5
    x = d**0.5 * jax.nn.one_hot(symbols, d, dtype=dtype)
    targets = (jnp.take_along_axis(chains.table[:, :, 0], symbols, 1) - 1 / d) / unit
    y = ((chains.symbols[:, 1:-1] == 0).astype(dtype) - 1 / d) / unit
    return Prompt(x[:, :-1], y, x[:, -1], targets[:, -1]), targets


SYMBOLIC = {"recall": sample_recall, "bigrams": sample_bigrams}
