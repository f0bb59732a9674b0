"""Sequences of a Markov chain with a new transition table for every prompt, and the Bayes rule."""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import Real, check_at_least, check_positive


class MarkovTask(flax.struct.PyTreeNode):
    """n transitions between K symbols; every row of the table is Dirichlet(c, ..., c).

    The first symbol is uniform. ``concentration`` c may be traced, sizes are static.
    """

    n: int = flax.struct.field(pytree_node=False)
    num_symbols: int = flax.struct.field(pytree_node=False)  # K
    concentration: Real = 1.0
    dtype: DTypeLike | None = flax.struct.field(default=None, pytree_node=False)

    def __post_init__(self):
        check_at_least(self.n, "n")
        check_at_least(self.num_symbols, "num_symbols", 2)
        check_positive(self.concentration, "concentration")


class Chain(flax.struct.PyTreeNode):
    """A sequence of symbols 0, ..., K - 1 and the table from which it was drawn."""

    symbols: Array  # [n+1]
    table: Array  # [K, K], rows p_i


def sample(key: Array, task: MarkovTask) -> Chain:
    """Draw one chain."""
    key_table, key_first, key_steps = jax.random.split(key, 3)
    shape = (task.num_symbols, task.num_symbols)
    gammas = jax.random.gamma(key_table, jnp.asarray(task.concentration), shape, task.dtype)
    table = gammas / gammas.sum(1, keepdims=True)
    ends = jnp.cumsum(table, 1)[:, :-1]

    def step(symbol: Array, number: Array) -> tuple[Array, Array]:
        symbol = (ends[symbol] <= number).sum()
        return symbol, symbol

    first = jax.random.randint(key_first, (), 0, task.num_symbols, int)
    numbers = jax.random.uniform(key_steps, (task.n,), table.dtype)
    later = jax.lax.scan(step, first, numbers)[1]
    return Chain(jnp.concatenate([first[None], later]), table)


def tokens(symbols: Array, num_symbols: int, dtype: DTypeLike | None = None) -> Array:
    """Return the tokens [T, 2K]: the current symbol and the one before it, each one-hot.

    The first token has zeros in place of the symbol before.
    """
    current = jax.nn.one_hot(symbols, num_symbols, dtype=dtype)
    return jnp.concatenate([current, jnp.pad(current, ((1, 0), (0, 0)))[:-1]], axis=1)


def visits(symbols: Array) -> Array:  # [T] -> [T]
    """Return how often the symbol at each place has been left before, its visits."""
    return _match_transitions(symbols).sum(1)


def dirichlet_prediction(symbols: Array, num_symbols: int, concentration: Real) -> Array:  # [T, K]
    """Return the distribution of the next symbol at each place by the Dirichlet-Bayes table:

        (c + count of i → j)/(Kc + visits of i),  i the current symbol

    It is the Bayes rule of ``MarkovTask`` (docs/theory, "Bigram tables").
    """
    concentration = jnp.asarray(concentration, float)
    follows = jax.nn.one_hot(symbols, num_symbols, dtype=concentration.dtype)
    alike = _match_transitions(symbols).astype(concentration.dtype)
    counts = concentration + alike @ follows
    return counts / counts.sum(1, keepdims=True)


def _match_transitions(symbols: Array) -> Array:  # [T, T]
    """Return which tokens i ≤ t followed a symbol that equals the one at t."""
    chex.assert_rank(symbols, 1, custom_message="symbols is one sequence [T]; use jax.vmap")
    before = jnp.concatenate([-jnp.ones_like(symbols[:1]), symbols[:-1]])
    return jnp.tril(symbols[:, None] == before[None])
