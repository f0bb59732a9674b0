"""The importance of each head, exactly and to first order.

>>> rises = jnp.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, -1.0]])  # Δ of two layers
>>> print(effective_heads(rises))
[4. 1.]
"""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import cache_if_jitted, check_finite, choose_batch_size, is_concrete
from lsa_lab.models import moments
from lsa_lab.models.matrices import matrices, replace_matrices

Loss = Callable[[Array], Array]  # head_mask [L, H] -> []


def losses(
    loss: Loss, head_masks: Array, *, together: int | None = None
) -> Array:  # [M, L, H] -> [M]
    """Return the loss with each mask; ``together`` masks are computed at a time.

    The default is 64 on a CPU, since more small models exceed its caches; choose 1 for a large
    model. A jitted loss is compiled once. Raises ValueError for a mask without heads.
    """
    width = choose_batch_size(together, 64)
    chex.assert_rank(head_masks, 3, custom_message="head_masks is [M, L, H]; put [None] before one")
    if is_concrete(head_masks):
        empty = np.flatnonzero(~np.asarray(head_masks, bool).any((1, 2)))
        if empty.size:
            raise ValueError(
                f"head_mask {empty[0]} of {len(head_masks)} is all zero: the prediction would be "
                "that of an empty network, whatever the prompt; keep at least one head"
            )
    return _compile(loss, width, is_concrete(head_masks))(head_masks)


@cache_if_jitted
def _compile(loss: Loss, width: int, outermost: bool) -> Callable[[Array], Array]:
    """Return the program of ``losses``; inside another one it has no compiler options."""

    def check(mask: Array) -> Array:
        risk = loss(mask)
        if risk.shape != ():
            raise ValueError(f"loss gives shape {risk.shape}: expected (), the risk of all prompts")
        return risk

    options = moments.compiler_options() if outermost else None
    return jax.jit(
        lambda masks: jax.lax.map(check, masks, batch_size=width), compiler_options=options
    )


def importance(
    loss: Loss, num_layers: int, num_heads: int, *, together: int | None = None
) -> Array:
    """Return Δ_{l,h} = loss(all heads but (l,h)) - loss(all heads) [L, H]; 0 for absent heads.

    It is negative where the model is better without the head. One program computes all L H + 1
    masks.
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
    """Return -∂loss/∂mask at the open gates: ``importance`` if the loss were linear in each gate.

    It estimates Δ with its sign, in one reverse pass for all heads. Michel et al. (1905.10650)
    average the absolute value over examples: give the loss of one example for that.
    """
    return -_compile_slopes(loss)(jnp.ones((num_layers, num_heads)))


@cache_if_jitted
def _compile_slopes(loss: Loss) -> Callable[[Array], Array]:
    return jax.jit(jax.grad(loss))


def normalised(importance: Array) -> Array:  # [L, H] -> [L, H]
    """Return max(Δ_{l,h}, 0) / Σ_h' max(Δ_{l,h'}, 0), all 0 in a layer where no head matters."""
    if importance.ndim < 2:
        raise ValueError(f"importance has shape {importance.shape}: expected [L, H]")
    check_importance(importance)
    positive = jnp.maximum(importance, 0)
    total = positive.sum(-1, keepdims=True)
    return positive / jnp.where(total > 0, total, 1)


def effective_heads(importance: Array) -> Array:  # [L, H] -> [L]
    """Return N_l = exp(-Σ_h p_h log p_h) of the normalised importance p: H equal heads count H.

    A layer where no head matters has N_l = 0: report it, and do not average over it.
    """
    shares = normalised(importance)
    entropy = -jnp.sum(jax.scipy.special.xlogy(shares, shares), axis=-1)
    return jnp.where(shares.any(-1), jnp.exp(entropy), 0)


def mask_heads(params: Any, module: str, head_mask: Array) -> Any:
    """Return the params with the output of each head multiplied by its gate in ``head_mask``.

    For a model that takes no mask [L, H]: ``module`` names the matrix that heads write with, such
    as "attn/out/kernel" in Flax (``models.matrices``).

        def loss(mask):
            return risk(heads.mask_heads(params, "attn/out/kernel", mask), prompts)
    """
    stacks = matrices(params, module, per_head=True)
    if len(stacks) != 1:
        raise ValueError(f"module {module!r} is {', '.join(stacks)}: heads write with one of them")
    ((name, stack),) = stacks.items()
    words = f"head_mask is [L, H], those of {name}"
    chex.assert_shape(head_mask, stack.shape[:2], custom_message=words)
    gates = jnp.asarray(head_mask, stack.dtype)[:, :, None, None]
    return replace_matrices(params, {name: gates * stack})


def check_importance(importance: Array) -> None:
    """Raise ValueError if a concrete importance is not finite."""
    advice = "the model explodes without that head; take the median over prompts as the loss"
    check_finite(importance, "importance", advice)
