"""How much each head matters, and which to keep.

Everything takes ``loss``: head_mask [L, H] -> [], the risk of a model on an evaluation batch that
the closure holds, so that all masks are judged on the same prompts. What the mask does to a head is
the loss's affair: zero, or with ``head_fill`` its mean or its writes on another prompt,

    def loss(mask):
        traces = jax.vmap(lambda t, fill: forward(params, t, config, mask, fill))(tokens, fills)

A model that takes no mask is masked in its weights, by ``masked``. Layers with fewer heads than H
are told by ``head_counts`` (transformer.Config.head_counts). Linear stacks can explode when a head
is missing: take the median over prompts as the loss, or over runs.
Modelled on the head assessment and pruning of A4, 2408.04532 (docs/theory, "Head
importance", "Pruning").

    >>> rises = jnp.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, -1.0]])  # Δ of two layers
    >>> print(effective_heads(rises))
    [4. 1.]
    >>> print(prune(rises))
    [[1. 1. 1. 1.]
     [1. 0. 0. 0.]]
"""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_finite, is_concrete, side_by_side
from lsa_lab.models import leaves, moments
from lsa_lab.models.trace import check_heads

Loss = Callable[[Array], Array]  # head_mask [L, H] -> []


def losses(
    loss: Loss, head_masks: Array, *, together: int | None = None
) -> Array:  # [M, L, H] -> [M]
    """The loss of every mask, in one program, ``together`` of them side by side.

    More than 64 toys, the default on a CPU, would not fit into its caches; of a large model 1 is
    enough. A mask that keeps no head at all is refused.
    """
    width = side_by_side(together, 64)
    chex.assert_rank(head_masks, 3, custom_message="head_masks is [M, L, H]; put [None] before one")
    options = None
    if is_concrete(head_masks):
        options = moments.compiler_options()  # a program inside another has no options of its own
        empty = np.flatnonzero(~np.asarray(head_masks, bool).any((1, 2)))
        if empty.size:
            raise ValueError(
                f"head_mask {empty[0]} of {len(head_masks)} is all zero: the prediction would be "
                "that of an empty network, whatever the prompt; keep at least one head"
            )

    def judge(mask: Array) -> Array:
        risk = loss(mask)
        if risk.shape != ():
            raise ValueError(f"loss gives shape {risk.shape}: expected (), the risk of all prompts")
        return risk

    return jax.jit(
        lambda masks: jax.lax.map(judge, masks, batch_size=width), compiler_options=options
    )(head_masks)


def importance(
    loss: Loss, num_layers: int, num_heads: int, *, together: int | None = None
) -> Array:
    """Δ_{l,h} = loss(all heads but (l,h)) - loss(all heads) [L, H], raw; absent heads get 0.

    One program for all L H + 1 masks. Negative where the model is better off without the head.
    """
    count = num_layers * num_heads
    if count < 2:
        raise ValueError(
            f"num_layers = {num_layers}, num_heads = {num_heads}: without its only head nothing is "
            "left to compare with; importance needs two heads"
        )
    masks = jnp.concatenate([jnp.ones((1, count)), 1 - jnp.eye(count)])
    risks = losses(loss, masks.reshape(-1, num_layers, num_heads), together=together)
    return (risks[1:] - risks[0]).reshape(num_layers, num_heads)


def first_order(loss: Loss, num_layers: int, num_heads: int) -> Array:  # [L, H]
    """-∂loss/∂mask at the open gates: ``importance`` as if the loss were linear in each gate.

    loss(mask - 1_{l,h}) ≈ loss(mask) - ∂loss/∂mask_{l,h}, so that it estimates Δ with its sign, in
    one reverse pass for all heads. Michel et al. (1905.10650) take the mean over examples of the
    absolute value: give a loss of one example for that. A median has the slope of its middle.
    """
    return -jax.jit(jax.grad(loss))(jnp.ones((num_layers, num_heads)))


def normalised(importance: Array) -> Array:  # [L, H] -> [L, H]
    """max(Δ_{l,h}, 0) / Σ_h' max(Δ_{l,h'}, 0): shares of a layer, all 0 where no head matters."""
    if importance.ndim < 2:
        raise ValueError(f"importance has shape {importance.shape}: expected [L, H]")
    _check_importance(importance)
    positive = jnp.maximum(importance, 0)
    total = positive.sum(-1, keepdims=True)
    return positive / jnp.where(total > 0, total, 1)


def effective_heads(importance: Array) -> Array:  # [L, H] -> [L]
    """N_l = exp(-Σ_h p_h log p_h) of the normalised importance p: H equal heads count H.

    A layer without a head that matters counts 0: look at it, do not average over it.
    """
    shares = normalised(importance)
    entropy = -jnp.sum(jax.scipy.special.xlogy(shares, shares), axis=-1)
    return jnp.where(shares.any(-1), jnp.exp(entropy), 0)


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


def masked(params: Any, module: str, head_mask: Array) -> Any:
    """The params with what each head writes multiplied by its gate in ``head_mask`` [L, H].

    For a model that takes no mask: ``module`` is where heads write, "attn/out/kernel" in Flax,
    "attn/c_proj/kernel:(12k)D" where 12 heads are folded into the rows (see ``models.leaves``):

        def loss(mask):
            return risk(heads.masked(params, "attn/out/kernel", mask), prompts)
    """
    matrices = leaves.matrices(params, module, per_head=True)
    if len(matrices) != 1:
        raise ValueError(f"module {module!r} is {', '.join(matrices)}: heads write by one of them")
    ((name, matrix),) = matrices.items()
    chex.assert_shape(
        head_mask, matrix.shape[:2], custom_message=f"head_mask is [L, H], those of {name}"
    )
    gates = jnp.asarray(head_mask, matrix.dtype)[:, :, None, None]
    return leaves.replace(params, {name: gates * matrix})


def mean_fill(heads: Array, lengths: Array | None = None) -> Array:  # -> [L, H, T, D]
    """Mean ablation: what a head [B, L, H, T, D] writes on average over prompts, for ``head_fill``.

    Prompts of several ``lengths`` [B], padded on the right, are averaged at each place over those
    that reach it; where none does, 0.
    """
    chex.assert_rank(heads, 5, custom_message="heads is [B, L, H, T, D]: vmap forward over prompts")
    check_heads(heads.shape[2], "mean_fill")
    if lengths is None:
        return heads.mean(0)
    inside = _inside(heads, lengths).astype(jnp.result_type(heads))  # [B, T]
    total = jnp.einsum("bt,blhtd->lhtd", inside, heads)
    return total / jnp.maximum(inside.sum(0), 1)[None, None, :, None]


def resampled_fill(heads: Array, lengths: Array | None = None) -> Array:  # [B, L, H, T, D] -> same
    """Resample ablation: what a head writes on the prompt before in the batch.

    Prompts are drawn independently, so the one before is as good as a random other one. They have
    one length: what is written on padding is no write on another prompt.
    """
    chex.assert_rank(heads, 5, custom_message="heads is [B, L, H, T, D]: vmap forward over prompts")
    check_heads(heads.shape[2], "resampled_fill")
    if heads.shape[0] < 2:
        raise ValueError("heads holds 1 prompt: resampling needs another one")
    if lengths is not None and is_concrete(lengths):
        _inside(heads, lengths)
        if np.ptp(np.asarray(lengths)):
            raise ValueError(
                f"the prompts have lengths {min(lengths)} to {max(lengths)}, and a place of one is "
                "padding of another: resample among prompts of one length, or use mean_fill"
            )
    return jnp.roll(heads, 1, axis=0)


def _inside(heads: Array, lengths: Array) -> Array:  # [B, T]
    num_prompts, num_tokens = heads.shape[0], heads.shape[3]
    chex.assert_shape(lengths, (num_prompts,), custom_message="lengths [B], one for each prompt")
    if is_concrete(lengths) and not np.isin(np.asarray(lengths), np.arange(num_tokens + 1)).all():
        raise ValueError(f"lengths of prompts of {num_tokens} tokens are whole, 0 to {num_tokens}")
    return jnp.arange(num_tokens)[None] < jnp.asarray(lengths)[:, None]


def _top(scores: Array, among: Array) -> Array:  # [L, H] bool
    """The largest of each layer."""
    best = jnp.where(among, scores, -jnp.inf).argmax(-1)
    return best[:, None] == jnp.arange(scores.shape[-1])[None]


def _present(importance: Array, head_counts: tuple[int, ...] | None) -> Array:  # [L, H] bool
    _check_importance(importance)
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


def _check_importance(importance: Array) -> None:
    advice = "the model explodes without that head; take the median over prompts as the loss"
    check_finite(importance, "importance", advice)
