"""Heads of one layer that write the label slot alone are one head Σ_h v_h A_h.

docs/theory, "Heads merge in one layer".
"""

import jax.numpy as jnp
import numpy as np

from draws import draw_prompt, seeds, sizes
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params
from population import answer

HEADS = 2


def error(seed, n, d, reads=0.0):
    """Heads with key-query matrix diag(A_h, 0) write u_h·x_i - v_h y_i to the label slot."""
    rng = np.random.default_rng(seed)
    prompt, matrices = draw_prompt(rng, n, d), rng.normal(size=(HEADS, d, d))
    scales = rng.normal(size=HEADS)
    w_kq, w_pv = np.zeros((2, 1, HEADS, d + 1, d + 1))
    w_kq[0, :, :d, :d], w_pv[0, :, d, d] = matrices, -scales
    w_pv[0, :, d, :d] = reads * rng.normal(size=(HEADS, d))
    arrays, merged = (prompt.x, prompt.y, prompt.x_query), np.einsum("h,hde->de", scales, matrices)
    many = answer(Params(w_kq, w_pv), *arrays)
    one = answer(constructions.preconditioned(jnp.asarray(merged[None])), *arrays)
    formula = prompt.y @ prompt.x @ merged @ prompt.x_query / n
    return max(abs(many - one), abs(many - formula)) / max(1.0, abs(one))


@sizes
@seeds
def test_many_heads_are_their_weighted_sum(n, d, seed):
    assert error(seed, n, d) < 1e-10


def test_control_heads_that_write_covariates_too_do_not_merge():
    """u_h adds u_hᵀ (XᵀX/n) A_h x_query, which no choice of one matrix on Xᵀy is."""
    assert error(0, 5, 3, reads=1.0) > 1e-3
