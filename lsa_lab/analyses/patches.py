"""What a context writes: few demonstrations, or an update of weights, in the place of a prompt.

Masked linear attention reads its demonstrations through S_0 = (1/n) Σ_i e_i e_iᵀ alone, so that
d + 1 virtual demonstrations serve every query. A patch is an update of weights that acts on a query
without context as the context did (Dherin et al. 2507.16003); it serves the queries that it was
computed from, and carries a share of the answer to others (docs/theory, "Virtual demonstrations",
"A patch carries its share").
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.models.linear_attention import Params, check_params
from lsa_lab.prompts import Prompt


def virtual_demonstrations(params: Params, prompt: Prompt) -> Prompt:
    """Return at most d + 1 demonstrations that give every query the answer of all n.

    They are those of ``moment_demonstrations``, whatever the weights are. The stack reads with
    keys="demonstrations", or "causal" if it has one layer, and normalises.

    Raises TypeError for Params that are not those of merged linear attention.
    """
    check_params(params, "an exact set of virtual demonstrations")
    chex.assert_axis_dimension(params.w_kq, -1, prompt.x.shape[-1] + 1)
    return moment_demonstrations(prompt)


def moment_demonstrations(prompt: Prompt) -> Prompt:
    """Return m = min(n, d + 1) demonstrations with the second moment S_0 of the prompt.

    They are the rows √(m λ_k) v_kᵀ of the m largest eigenvalues of S_0, the largest first, with
    signs that make the labels at least 0 (derived here; docs/theory, "Virtual demonstrations").
    """
    eigenvalues, vectors = jnp.linalg.eigh(prompts.second_moment(prompt))  # ascending
    count = min(prompt.x.shape[0], len(eigenvalues))
    signs = jnp.where(vectors[-1] < 0, -1, 1).astype(vectors.dtype)
    rows = (jnp.sqrt(count * jnp.maximum(eigenvalues, 0)) * signs)[:, None] * vectors.T
    rows = rows[::-1][:count]
    return prompt.replace(x=rows[:, :-1], y=rows[:, -1])


def rank_one_patch(weights: Array, bare: Array, changed: Array) -> Array:  # [o, k]
    """Return the update ΔW of weights [o, k] that does for one query what its context does.

    ΔW = W (a' - a) aᵀ/|a|², so that (W + ΔW) a = W a', where attention hands a [k] to the weights
    without context and a' [k] with context (Dherin et al. 2507.16003).
    """
    chex.assert_equal_shape([bare, changed])
    return least_squares_patch(bare[None], (weights @ (changed - bare))[None])


def least_squares_patch(inputs: Array, writes: Array) -> Array:  # [o, k]
    """Return the smallest Δ that comes nearest to Δ a_j = c_j for m queries.

    Δ = Cᵀ(A⁺)ᵀ with inputs A [m, k] and what the context adds, C [m, o]; exact for independent
    inputs. With m = 1 it has rank one.
    """
    chex.assert_rank([inputs, writes], 2)
    chex.assert_equal_shape_prefix([inputs, writes], 1)
    return writes.T @ jnp.linalg.pinv(inputs).T


def carried_share(patch: Array, inputs: Array, writes: Array) -> Array:  # []
    """Return the share of what a context writes that a patch [o, k] carries to these queries.

    1 - Σ_j |c_j - Δ a_j|²/Σ_j |c_j|² over B queries with inputs [B, k] and writes [B, o]; it is
    min(m/d, 1) on average for m isotropic queries and one layer of linear attention.
    """
    missed = writes - inputs @ patch.T
    return 1 - jnp.sum(missed**2) / jnp.sum(writes**2)
