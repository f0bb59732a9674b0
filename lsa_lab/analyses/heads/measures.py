"""How much each head matters, exactly and to first order.

>>> rises = jnp.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, -1.0]])  # Δ of two layers
>>> print(effective_heads(rises))
[4. 1.]
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import cached_if_jitted, check_finite, is_concrete, side_by_side
from lsa_lab.models import moments

Loss = Callable[[Array], Array]  # head_mask [L, H] -> []


def losses(
    loss: Loss, head_masks: Array, *, together: int | None = None
) -> Array:  # [M, L, H] -> [M]
    """The loss of every mask, in one program, ``together`` of them side by side.

    More than 64 toys, the default on a CPU, would not fit into its caches; of a large model 1 is
    enough. A mask that keeps no head at all is refused. A loss that is jitted is compiled once.
    """
    width = side_by_side(together, 64)
    chex.assert_rank(head_masks, 3, custom_message="head_masks is [M, L, H]; put [None] before one")
    if is_concrete(head_masks):
        empty = np.flatnonzero(~np.asarray(head_masks, bool).any((1, 2)))
        if empty.size:
            raise ValueError(
                f"head_mask {empty[0]} of {len(head_masks)} is all zero: the prediction would be "
                "that of an empty network, whatever the prompt; keep at least one head"
            )
    return _losses(loss, width, is_concrete(head_masks))(head_masks)


@cached_if_jitted
def _losses(loss: Loss, width: int, outermost: bool) -> Callable[[Array], Array]:
    """The program of ``losses``; one inside another has no compiler options of its own."""

    def judge(mask: Array) -> Array:
        risk = loss(mask)
        if risk.shape != ():
            raise ValueError(f"loss gives shape {risk.shape}: expected (), the risk of all prompts")
        return risk

    options = moments.compiler_options() if outermost else None
    return jax.jit(
        lambda masks: jax.lax.map(judge, masks, batch_size=width), compiler_options=options
    )


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
    return -_slopes(loss)(jnp.ones((num_layers, num_heads)))


@cached_if_jitted
def _slopes(loss: Loss) -> Callable[[Array], Array]:
    return jax.jit(jax.grad(loss))


def normalised(importance: Array) -> Array:  # [L, H] -> [L, H]
    """max(Δ_{l,h}, 0) / Σ_h' max(Δ_{l,h'}, 0): shares of a layer, all 0 where no head matters."""
    if importance.ndim < 2:
        raise ValueError(f"importance has shape {importance.shape}: expected [L, H]")
    check_importance(importance)
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


def check_importance(importance: Array) -> None:
    """Raise if a concrete importance is not finite."""
    advice = "the model explodes without that head; take the median over prompts as the loss"
    check_finite(importance, "importance", advice)
