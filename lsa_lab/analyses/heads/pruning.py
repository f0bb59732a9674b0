"""Masks that keep heads by their importance, and controls that keep as many.

>>> rises = jnp.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, -1.0]])  # Δ of two layers
>>> print(prune(rises))
[[1. 1. 1. 1.]
 [1. 0. 0. 0.]]
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.analyses.heads.measures import check_importance

HeadCounts = tuple[int, ...] | None  # heads of each layer; all H by default


def prune(importance: Array, head_counts: HeadCounts = None) -> Array:  # [L, H]
    """Keep all heads of layer 1, and the most important one of each later layer."""
    present = _mark_present(importance, head_counts)
    top = _mark_top(importance, present)
    return top.at[0].set(present[0]).astype(jnp.result_type(importance))


def prune_first_layer(importance: Array, head_counts: HeadCounts = None) -> Array:  # [L, H]
    """Keep the most important head of layer 1, and all of each later layer: a control."""
    present = _mark_present(importance, head_counts)
    top = _mark_top(importance, present)
    return jnp.asarray(present).at[0].set(top[0]).astype(jnp.result_type(importance))


def prune_to_random_heads(
    key: Array, importance: Array, head_counts: HeadCounts = None
) -> Array:  # [L, H]
    """Keep all of layer 1, and of each later layer a random head but not the top one: a control.

    A layer with one head keeps it.
    """
    present = _mark_present(importance, head_counts)
    others = ~_mark_top(importance, present) & present
    candidates = jnp.where(others.any(-1, keepdims=True), others, present)
    scores = jax.random.uniform(key, importance.shape, jnp.result_type(importance))
    chosen = _mark_top(scores, candidates)
    return chosen.at[0].set(present[0]).astype(jnp.result_type(importance))


def remove_at_random(
    key: Array, importance: Array, head_counts: HeadCounts = None
) -> Array:  # [L, H]
    """Keep as many heads as ``prune``, drawn at random from the whole network: a control."""
    present = _mark_present(importance, head_counts)
    count = int(present[0].sum()) + len(present) - 1
    chosen = jax.random.choice(key, np.flatnonzero(present), (count,), replace=False)
    mask = jnp.zeros(present.size, jnp.result_type(importance)).at[chosen].set(1)
    return mask.reshape(present.shape)


def _mark_top(scores: Array, candidates: Array | np.ndarray) -> Array:  # [L, H] bool
    """Return True at the largest candidate of each layer."""
    best = jnp.where(candidates, scores, -jnp.inf).argmax(-1)
    return best[:, None] == jnp.arange(scores.shape[-1])[None]


def _mark_present(importance: Array, head_counts: HeadCounts) -> np.ndarray:  # [L, H] bool
    check_importance(importance)
    chex.assert_rank(importance, 2, custom_message="importance is [L, H]; use jax.vmap for runs")
    num_layers, num_heads = importance.shape
    counts = (num_heads,) * num_layers if head_counts is None else tuple(head_counts)
    if len(counts) != num_layers or max(counts) != num_heads or min(counts) < 1:
        raise ValueError(
            f"head_counts is {counts}, importance is for {num_layers} layers of up to {num_heads} "
            "heads: pass the head_counts of the config the importance was measured on"
        )
    return np.arange(num_heads)[None] < np.array(counts)[:, None]
