"""What a closed head writes: nothing, its mean, or what it wrote on another prompt."""

from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import is_concrete
from lsa_lab.models import leaves
from lsa_lab.models.trace import check_heads


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
