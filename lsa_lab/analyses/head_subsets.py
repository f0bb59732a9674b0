"""Every subset of a layer's heads, what each head is worth among them, and greedy pruning.

``loss`` is head_mask [L, H] -> [], on an evaluation batch that the closure holds (see ``heads``).
"""

import math
from collections.abc import Callable

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats, cached_if_jitted, check_finite, side_by_side

MAX_SUBSETS = 2**14

Loss = Callable[[Array], Array]  # head_mask [L, H] -> []


class Greedy(flax.struct.PyTreeNode):
    """Heads in the order in which greedy pruning removes them, down to the last one."""

    layers: Array  # [K]
    heads: Array  # [K]
    losses: Array  # [K+1]  with all heads, and after each removal


def subsets(num_heads: int) -> Array:  # [2^H, H]
    """All 0/1 vectors: row i keeps head h if bit h of i is set; row 0 is empty, the last full."""
    if num_heads < 1 or 2**num_heads > MAX_SUBSETS:
        raise ValueError(
            f"num_heads = {num_heads} has {2**num_heads} subsets: choose 1 to "
            f"{int(math.log2(MAX_SUBSETS))} heads, or prune with `greedy`"
        )
    kept = (np.arange(2**num_heads)[:, None] >> np.arange(num_heads)[None]) & 1
    return jnp.asarray(kept, float)


def best_subsets(losses: Array) -> Array:  # [2^H] -> [H+1]
    """Rows of ``subsets``: the smallest loss for each number of heads kept, from none to all."""
    sizes = subsets(_num_heads(losses)).sum(1)
    by_size = sizes[None] == jnp.arange(_num_heads(losses) + 1, dtype=sizes.dtype)[:, None]
    return jnp.where(by_size, losses[None], jnp.inf).argmin(1)


def shapley(losses: Array) -> Array:  # [2^H] -> [H]
    """φ_h = Σ_{S without h} |S|! (H - 1 - |S|)! / H!  (loss(S) - loss(S with h)).

    The loss that a head saves, averaged over the orders in which heads may be added: the only
    division that is symmetric, additive and efficient, Σ_h φ_h = loss(none) - loss(all) (Shapley
    1953). ``losses`` in the order of ``subsets``.
    """
    losses = as_floats(losses)
    num_heads = _num_heads(losses)
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


def greedy(
    loss: Loss,
    num_layers: int,
    num_heads: int,
    head_counts: tuple[int, ...] | None = None,
    *,
    together: int | None = None,
) -> Greedy:
    """Remove, again and again, the head of the whole network that is missed least, until one is
    left. One program, ``together`` masks side by side; a removal that ends in NaN or infinity is
    the last to be chosen.
    """
    width = side_by_side(together, 64)
    counts = (num_heads,) * num_layers if head_counts is None else head_counts
    if len(counts) != num_layers or max(counts) != num_heads or min(counts) < 1:
        raise ValueError(
            f"head_counts is {counts}: it has {num_layers} entries, from 1 to {num_heads} = H"
        )
    start = jnp.asarray(np.arange(num_heads)[None] < np.array(counts)[:, None], float).ravel()
    first, order, risks = _removals(loss, (num_layers, num_heads), sum(counts) - 1, width)(start)
    layers, heads = jnp.divmod(order, num_heads)
    return Greedy(layers, heads, jnp.concatenate([first[None], risks]))


@cached_if_jitted
def _removals(loss: Loss, shape: tuple[int, int], count: int, width: int) -> Callable:
    """The program of ``greedy``: a mask -> its loss, ``count`` removals and the losses after."""
    every = jnp.eye(math.prod(shape))

    def shaped(flat: Array) -> Array:
        return loss(flat.reshape(shape))

    def remove(mask: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        candidates = jnp.maximum(mask[None] - every, 0)
        risks = jax.lax.map(shaped, candidates, batch_size=width)
        worst = float(jnp.finfo(risks.dtype).max)
        ranked = jnp.nan_to_num(risks, nan=worst, posinf=worst)
        chosen = jnp.where(mask > 0, ranked, jnp.inf).argmin()
        return candidates[chosen], (chosen, risks[chosen])

    @jax.jit
    def run(start: Array) -> tuple[Array, Array, Array]:
        _, (order, risks) = jax.lax.scan(remove, start, length=count)
        return shaped(start), order, risks

    return run


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
