"""Heads of one layer that write the label slot are one head Σ_h v_h A_h.

docs/theory, "Heads merge in one layer". Sides: the network with its many heads; the network with
one, and ŷ = (Xᵀy/n)ᵀ (Σ_h v_h A_h) x_q. Hypothesis: every head writes labels only.
"""

import jax
import jax.numpy as jnp
import numpy as np

import population
from draws import seeds
from lsa_lab.models import constructions, linear_attention

N, D, NUM_HEADS = 4, 3, 2


def random_case(seed, n, d, num_heads):
    """A prompt's arrays, A_h, v_h and u_h."""
    rng = np.random.default_rng(seed)
    prompt = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)
    matrices, scales = rng.normal(size=(num_heads, d, d)), rng.normal(size=num_heads)
    case = prompt, matrices, scales, rng.normal(size=(num_heads, d))
    return jax.tree.map(jnp.asarray, case)


def heads_prediction(prompt, matrices, scales, covariate_reads):
    """Heads with key-query matrix diag(A_h, 0) that write u_h·x_i - v_h y_i to the label slot."""
    num_heads, d, _ = matrices.shape
    w_kq = jnp.pad(matrices, ((0, 0), (0, 1), (0, 1)))
    w_pv = jnp.zeros((num_heads, d + 1, d + 1), matrices.dtype)
    w_pv = w_pv.at[:, d, d].set(-scales).at[:, d, :d].set(covariate_reads)
    return population.predict(linear_attention.Params(w_kq[None], w_pv[None]), *prompt)


def merged_prediction(prompt, matrices, scales):
    merged = constructions.preconditioned(jnp.einsum("h,hde->de", scales, matrices)[None])
    return population.predict(merged, *prompt)


def merged_formula(prompt, matrices, scales):
    x, y, x_query = prompt
    return sum(v * (y @ x @ A @ x_query) for v, A in zip(scales, matrices, strict=True)) / len(y)


@jax.jit
def discrepancy(case, covariate_reads):
    prompt, matrices, scales, _ = case
    merged = merged_prediction(prompt, matrices, scales)
    many = heads_prediction(prompt, matrices, scales, covariate_reads)
    formula = merged_formula(prompt, matrices, scales)
    return jnp.maximum(abs(many - merged), abs(many - formula)) / jnp.maximum(1.0, abs(merged))


@seeds
def test_many_heads_are_their_weighted_sum(seed):
    case = random_case(seed, N, D, NUM_HEADS)
    assert discrepancy(case, jnp.zeros((NUM_HEADS, D))) < 1e-10


def test_control_heads_that_write_covariates_too_do_not_merge():
    """u_h adds u_hᵀ (XᵀX/n) A_h x_query, which no choice of one matrix on Xᵀy is."""
    case = random_case(0, N, D, NUM_HEADS)
    assert discrepancy(case, case[-1]) > 1e-3
