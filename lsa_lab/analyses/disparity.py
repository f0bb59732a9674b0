"""How unequal the demonstrations of a prompt are, and what depth does to it over many prompts.

Sizes come as logarithms [..., n] (``amplification.log_sizes``), so that no power or sum of them
overflows; p_i is the share |flow_i| / Σ_j |flow_j|. Where every flow is zero, or one has overflown,
there are no shares and every measure is NaN. Ratios of deep stacks are heavy-tailed: prompts are
summed up by medians and fractions, which say how many prompts they leave out.
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array


def shares(log_sizes: Array) -> Array:  # [..., n] -> [..., n]
    """p_i = |flow_i| / Σ_j |flow_j|."""
    return jax.nn.softmax(log_sizes)


def top_share(log_sizes: Array) -> Array:  # [..., n] -> [...]
    """max_i p_i: 1/n where all are equal, 1 where one has everything."""
    return shares(log_sizes).max(-1)


def entropy(log_sizes: Array) -> Array:  # [..., n] -> [...]
    """-Σ p_i log p_i: log n where all are equal, 0 where one has everything."""
    return jax.scipy.special.entr(shares(log_sizes)).sum(-1)


def effective_number(log_sizes: Array) -> Array:  # [..., n] -> [...]
    """exp ``entropy``: the number of equal demonstrations that have this entropy."""
    return jnp.exp(entropy(log_sizes))


def gini(log_sizes: Array) -> Array:  # [..., n] -> [...]
    """Σ_ij |p_i - p_j| / 2n = Σ_k (2k - n - 1) p_(k) / n, p_(1) ≤ ... ≤ p_(n).

    0 where all are equal, (n-1)/n where one has everything.
    """
    ascending = jnp.sort(shares(log_sizes))
    n = ascending.shape[-1]
    ranks = jnp.arange(1 - n, n, 2, dtype=ascending.dtype)
    return ascending @ ranks / n


class Summary(flax.struct.PyTreeNode):
    """What depth does to the ratio of two demonstrations, over the prompts that stay finite.

    The four fractions are of the kept prompts; everything but the count is NaN where none is kept.
    """

    median: Array  # [L]  of the log ratio
    growth: Array  # []  fraction whose ratio never falls and ends larger
    larger: Array  # []  fraction whose ratio is larger at the last layer than at the first
    smaller: Array  # []  fraction whose ratio is smaller at the last layer than at the first
    flips: Array  # []  fraction where the smaller at the first layer is ahead at the last
    dropped: Array  # []  number of prompts with a zero flow or an overflow in any layer


def summary(log_ratios: Array) -> Summary:  # [B, L]
    """The medians and fractions of log ratios, one prompt a row.

    Each row is turned so that it starts at or above 0, hence a row may belong to any fixed pair,
    and the median falls by regression to the mean where layers only reshuffle: it is at most the
    median of |log ratio|, which turns nothing (docs/theory, "The amplification theorem").
    Changes below √eps of the precision count as none: they are rounding. A prompt that overflows
    in one layer is left out of all of them, so that every layer counts the same prompts. Those that
    overflow are often those that grew: where ``dropped`` is not small, median and growth are biased
    downwards and the fractions hold only of what is left.
    """
    chex.assert_rank(log_ratios, 2, custom_message="log_ratios are [B, L], one prompt a row")
    if log_ratios.shape[1] < 2:
        raise ValueError("log_ratios has one layer; growth compares at least two")
    kept = jnp.isfinite(log_ratios).all(1)
    turned = jnp.where(log_ratios[:, :1] < 0, -log_ratios, log_ratios)
    margin = float(jnp.finfo(turned.dtype).eps) ** 0.5
    first, last = turned[:, 0], turned[:, -1]
    larger = last - first > margin
    never_falls = (jnp.diff(turned, axis=1) > -margin).all(1)
    median, dropped = median_of_finite(turned)

    def fraction(event: Array) -> Array:  # [B] -> []
        return (kept & event).sum(dtype=turned.dtype) / kept.sum(dtype=turned.dtype)

    return Summary(
        median=median,
        growth=fraction(never_falls & larger),
        larger=fraction(larger),
        smaller=fraction(first - last > margin),
        flips=fraction((first > margin) & (last < -margin)),
        dropped=dropped,
    )


def median_of_finite(values: Array) -> tuple[Array, Array]:  # [B, ...] -> [...], []
    """The median over prompts that are finite in every entry, and the number of the others.

    NaN where no prompt is left.
    """
    finite = jnp.isfinite(values).reshape(len(values), -1).all(1)
    chosen = finite.reshape(-1, *(1,) * (values.ndim - 1))
    return jnp.nanmedian(jnp.where(chosen, values, jnp.nan), axis=0), (~finite).sum()
