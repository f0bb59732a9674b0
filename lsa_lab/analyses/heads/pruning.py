"""Which heads to keep by their importance, and controls that keep as many.

>>> rises = jnp.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, -1.0]])  # Δ of two layers
>>> print(prune(rises))
[[1. 1. 1. 1.]
 [1. 0. 0. 0.]]
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.heads.measures import check_importance


def prune(importance: Array, head_counts: tuple[int, ...] | None = None) -> Array:  # [L, H]
    """Keep all heads of layer 1, and the most important one of each later layer."""
    present = _present(importance, head_counts)
    top = _top(importance, present)
    return top.at[0].set(present[0]).astype(jnp.result_type(importance))


def prune_first_layer(importance: Array, head_counts: tuple[int, ...] | None = None) -> Array:
    """Control: keep the most important head of layer 1, and all of each later layer."""
    present = _present(importance, head_counts)
    top = _top(importance, present)
    return present.at[0].set(top[0]).astype(jnp.result_type(importance))


def prune_to_random_heads(
    key: Array, importance: Array, head_counts: tuple[int, ...] | None = None
) -> Array:  # [L, H]
    """Control: keep all of layer 1, and of each later layer a random head that is not the top one.

    A layer with one head keeps it.
    """
    present = _present(importance, head_counts)
    others = present & ~_top(importance, present)
    others = jnp.where(others.any(-1, keepdims=True), others, present)
    chosen = _top(jax.random.uniform(key, importance.shape, jnp.result_type(importance)), others)
    return chosen.at[0].set(present[0]).astype(jnp.result_type(importance))


def remove_at_random(
    key: Array, importance: Array, head_counts: tuple[int, ...] | None = None
) -> Array:  # [L, H]
    """Control: as many heads as ``prune`` keeps, drawn at random from the whole network."""
    present = _present(importance, head_counts)
    scores = jax.random.uniform(key, importance.shape, jnp.result_type(importance))
    scores = jnp.where(present, scores, -1).ravel()
    rank = jnp.argsort(jnp.argsort(-scores)).reshape(importance.shape)
    kept = present[0].sum() + importance.shape[0] - 1
    return (rank < kept).astype(jnp.result_type(importance))


def _top(scores: Array, among: Array) -> Array:  # [L, H] bool
    """The largest of each layer."""
    best = jnp.where(among, scores, -jnp.inf).argmax(-1)
    return best[:, None] == jnp.arange(scores.shape[-1])[None]


def _present(importance: Array, head_counts: tuple[int, ...] | None) -> Array:  # [L, H] bool
    check_importance(importance)
    chex.assert_rank(importance, 2, custom_message="importance is [L, H]; use jax.vmap for runs")
    num_layers, num_heads = importance.shape
    if head_counts is None:
        head_counts = (num_heads,) * num_layers
    if len(head_counts) != num_layers or max(head_counts) != num_heads or min(head_counts) < 1:
        raise ValueError(
            f"head_counts is {head_counts}, importance is for {num_layers} layers of up to "
            f"{num_heads} heads: pass the head_counts of the config the importance was measured on"
        )
    return jnp.arange(num_heads)[None] < jnp.asarray(head_counts)[:, None]
