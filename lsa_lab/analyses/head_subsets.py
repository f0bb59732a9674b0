"""Every subset of a layer's heads, and what each head is worth among them."""

import math

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats, check_finite

MAX_SUBSETS = 2**14


def subsets(num_heads: int) -> Array:  # [2^H, H]
    """All 0/1 vectors: row i keeps head h if bit h of i is set; row 0 is empty, the last full."""
    if num_heads < 1 or 2**num_heads > MAX_SUBSETS:
        raise ValueError(
            f"num_heads = {num_heads} has {2**num_heads} subsets: choose 1 to "
            f"{int(math.log2(MAX_SUBSETS))} heads"
        )
    kept = (np.arange(2**num_heads)[:, None] >> np.arange(num_heads)[None]) & 1
    return jnp.asarray(kept, float)


def shapley(losses: Array) -> Array:  # [2^H] -> [H]
    """φ_h = Σ_{S without h} |S|! (H - 1 - |S|)! / H!  (loss(S) - loss(S with h)).

    The loss that a head saves, averaged over the orders in which heads may be added: the only
    division that is symmetric, additive and efficient, Σ_h φ_h = loss(none) - loss(all) (Shapley
    1953). ``losses`` in the order of ``subsets``.
    """
    num_heads, losses = _num_heads(losses), as_floats(losses)
    index = np.arange(2**num_heads)
    weights = np.array(
        [1 / (num_heads * math.comb(num_heads - 1, size)) for size in range(num_heads)]
    )
    sizes = np.array([int(i).bit_count() for i in index])
    values = []
    for h in range(num_heads):
        without = index[(index >> h) & 1 == 0]
        saved = losses[without] - losses[without + (1 << h)]
        values.append(jnp.asarray(weights[sizes[without]], saved.dtype) @ saved)
    return jnp.stack(values)


def _num_heads(losses: Array) -> int:
    chex.assert_rank(losses, 1, custom_message="losses is [2^H]: one for each row of subsets(H)")
    num_heads = losses.shape[0].bit_length() - 1
    if losses.shape[0] != 2**num_heads or num_heads < 1:
        raise ValueError(
            f"losses has {losses.shape[0]} entries: subsets are 2, 4, 8, ... in number"
        )
    advice = "the model explodes without some heads; take the median over prompts as the loss"
    check_finite(losses, "losses", advice)
    return num_heads
