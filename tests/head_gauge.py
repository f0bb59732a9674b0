"""Heads of linear attention that compute the same: mixed, orthogonal and canonical ones.

A layer adds Σ_h w_pv_h S w_kq_h e_t to token t, with a symmetric S for every key mask. So it is

    update_a = Σ_{βγc} M_{aβγc} S_{βγ} e_c,    M_{aβγc} = (N_{aβγc} + N_{aγβc})/2,
    N_{aβγc} = Σ_h w_pv_h[a, β] w_kq_h[γ, c]

(docs/theory, "Heads are not unique").
"""

import numpy as np

from draws import jit_numpy
from lsa_lab.models import head_gauge
from lsa_lab.models.linear_attention import Params

mix_heads = jit_numpy(head_gauge.mix_heads)


def sum_heads(params: Params) -> np.ndarray:  # [L, e, e, e, e]
    """Return N of every layer."""
    return np.einsum("lhab,lhgc->labgc", params.w_pv, params.w_kq)


def layer_tensor(params: Params) -> np.ndarray:  # [L, e, e, e, e]
    """Return M of every layer; two layers compute the same if and only if M is the same."""
    return (sum_heads(params) + sum_heads(params).swapaxes(2, 3)) / 2


def as_heads(tensor: np.ndarray) -> tuple[Params, np.ndarray]:  # Params of e² heads, [L, e²]
    """Return heads √σ u, √σ v with the sum N = Σ_h σ_h u_h v_hᵀ, and the singular values, falling.

    Those of N = M are the same for all layers that compute the same, up to a sign of both sides of
    a head and a rotation among heads with equal σ.
    """
    num_layers, e = tensor.shape[:2]
    left, values, right = np.linalg.svd(tensor.reshape(num_layers, e * e, e * e))
    roots, shape = np.sqrt(values)[..., None], (num_layers, e * e, e, e)
    w_pv, w_kq = (roots * side for side in (left.swapaxes(1, 2), right))
    return Params(w_kq=w_kq.reshape(shape), w_pv=w_pv.reshape(shape)), values
