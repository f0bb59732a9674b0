"""The inequality of a prompt's demonstrations, and its change with depth over many prompts.

Sizes are given as logarithms [..., n] (``amplification.log_sizes``), so that no power or sum of
them overflows. Ratios of deep stacks are heavy-tailed: prompts are summarised by medians and
fractions, with the number of prompts that are left out.
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array


def effective_number(log_sizes: Array) -> Array:  # [..., n] -> [...]
    """Return exp(-Σ_i p_i log p_i), p_i = |flow_i| / Σ_j |flow_j|: n if equal, 1 if one has all.

    NaN where every flow is zero, or one has overflowed.
    """
    return jnp.exp(jax.scipy.special.entr(jax.nn.softmax(log_sizes)).sum(-1))


class Summary(flax.struct.PyTreeNode):
    """The change of the ratio of two demonstrations with depth, over the prompts that stay finite.

    The two fractions are of these prompts; all but the count are NaN where there is none.
    """

    median: Array  # [L]  of the log ratio
    larger: Array  # []  fraction whose ratio is larger at the last layer than at the first
    flips: Array  # []  fraction where the smaller at the first layer is ahead at the last
    dropped: Array  # []  number of prompts with a zero flow or an overflow in any layer


def summarise(log_ratios: Array) -> Summary:  # [B, L]
    """Return the medians and fractions of log ratios, one prompt a row.

    The sign of each row is set so that it starts at or above 0, hence a row may belong to any fixed
    pair. The median then falls by regression to the mean where layers only reshuffle: it is at most
    the median of |log ratio| (docs/theory, "The amplification theorem"). Changes below √eps of the
    precision are rounding and do not count. A prompt that overflows in one layer is left out of all
    layers. Prompts that overflow are often those that grew: where ``dropped`` is not small, the
    median is biased downwards.
    """
    chex.assert_rank(log_ratios, 2, custom_message="log_ratios are [B, L], one prompt a row")
    if log_ratios.shape[1] < 2:
        raise ValueError("log_ratios has one layer; growth compares at least two")
    is_kept = jnp.isfinite(log_ratios).all(1)
    rows = jnp.where(log_ratios[:, :1] < 0, -log_ratios, log_ratios)
    margin = float(jnp.finfo(rows.dtype).eps) ** 0.5
    first, last = rows[:, 0], rows[:, -1]
    median, dropped = median_of_finite(rows)

    def fraction(event: Array) -> Array:  # [B] -> []
        return (is_kept & event).sum(dtype=rows.dtype) / is_kept.sum(dtype=rows.dtype)

    return Summary(
        median=median,
        larger=fraction(last - first > margin),
        flips=fraction((first > margin) & (last < -margin)),
        dropped=dropped,
    )


def median_of_finite(values: Array) -> tuple[Array, Array]:  # [B, ...] -> [...], []
    """Return the median over prompts that are finite in every entry, and the number of the others.

    NaN where no prompt is left.
    """
    is_finite = jnp.isfinite(values).reshape(len(values), -1).all(1)
    chosen = is_finite.reshape(-1, *(1,) * (values.ndim - 1))
    return jnp.nanmedian(jnp.where(chosen, values, jnp.nan), axis=0), (~is_finite).sum()
