"""How many heads one layer of linear attention needs to preprocess: d, and what fewer miss.

To every token the layer should write G x̃, x̃ = diag(r) x, r = Xᵀy/n, G [k, d] a fixed matrix: the
identity, or any linear image of x̃. Its output a is the cubic Σ N_{aβγc} S_{βγ} x_c in
S = (1/n) Σ_i e_i e_iᵀ and the token's x, with

    N_{aβγc} = Σ_h written_h[a, β] queried_h[γ, c].

If all demonstrations are u, each head writes multiples of one vector, but for u = (1, ..., 1)
the output should be G x: at least rank G heads. H heads miss Σ_{i>H} σ_i(G)² at least, and that
is reached (derived here; docs/theory, "The head lower bound").
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least


def layer(image: Array, num_heads: int) -> tuple[Array, Array]:  # [H, k, e], [H, e, d]
    """The heads that come nearest to G x̃, exactly if there are rank G of them.

    G = Σ_i σ_i g_i v_iᵀ: head i queries Σ_j v_ij x_j x_j and writes σ_i y to the outputs g_i.
    """
    check_at_least(num_heads, "num_heads")
    image = as_floats(image)
    left, values, right = jnp.linalg.svd(image, full_matrices=False)
    k, d = image.shape
    present = min(num_heads, k, d)
    written = jnp.zeros((num_heads, k, d + 1), image.dtype)
    queried = jnp.zeros((num_heads, d + 1, d), image.dtype)
    written = written.at[:present, :, d].set((left * values[None])[:, :present].T)
    rows = jax.vmap(jnp.diag)(right[:present])
    return written, queried.at[:present, :d].set(rows)


def coefficients(written: Array, queried: Array) -> Array:  # [H, k, e], [H, e, d] -> [k, e, e, d]
    """Coefficients of S_{βγ} x_c in output a for β < γ, halved at β = γ, where they stand twice.

    written: k rows of W_pv, one for each output. queried: the columns of W_kq that x meets.
    """
    chex.assert_rank([written, queried], 3)
    num_heads, _, e = written.shape
    chex.assert_shape(
        queried,
        (num_heads, e, e - 1),
        custom_message="written is [H, k, e], queried [H, e, d], e = d + 1",
    )
    tensor = jnp.einsum("hab,hgc->abgc", written, queried)
    symmetric = tensor + tensor.swapaxes(1, 2)
    return symmetric * (1 - jnp.eye(e, dtype=tensor.dtype) / 2)[None, :, :, None]


def residual(written: Array, queried: Array, image: Array) -> Array:  # []
    """Σ over a, c and β ≤ γ of (coefficient of S_{βγ} x_c - its value in (G x̃)_a)².

    (G x̃)_a = Σ_c G_ac S_{cy} x_c. Zero if and only if the layer writes G x̃ for every prompt.
    """
    difference = coefficients(written, queried)
    shape = written.shape[1], written.shape[2] - 1
    chex.assert_shape(image, shape, custom_message="image is G [k, d], for as many outputs")
    e, c = written.shape[2], np.arange(written.shape[2] - 1)
    difference = difference.at[:, c, e - 1, c].add(-image)
    once = jnp.triu(jnp.ones((e, e), difference.dtype))
    return jnp.sum(once[None, :, :, None] * difference**2)


def least_residual(image: Array, num_heads: int) -> Array:  # []
    """Σ_{i>H} σ_i(G)², the least residual of all layers of H heads: d - H for G = I."""
    check_at_least(num_heads, "num_heads", 0)
    return jnp.sum(jnp.linalg.svd(image, compute_uv=False)[num_heads:] ** 2)


def searched_residuals(
    image: Array, num_heads: int, restarts: int, seed: int = 0
) -> np.ndarray:  # [restarts]
    """The residual at which BFGS ends from each of ``restarts`` Gaussian starts, ascending.

    None is below ``least_residual``; in float64 if JAX has it.
    """
    check_at_least(num_heads, "num_heads")
    check_at_least(restarts, "restarts")
    from scipy.optimize import minimize

    k, d = image.shape
    objective = _objective(image, num_heads)
    rng = np.random.default_rng(seed)
    starts = rng.normal(scale=0.5, size=(restarts, num_heads * (d + 1) * (k + d)))
    options = {"gtol": 1e-7}
    ends = [
        minimize(objective, start, jac=True, method="BFGS", options=options).fun for start in starts
    ]
    return np.sort(ends)


def _objective(image: Array, num_heads: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The residual and its gradient as a function of one vector, as scipy wants them."""
    k, d = image.shape

    @jax.jit
    @jax.value_and_grad
    def of_vector(vector: Array) -> Array:
        written, queried = jnp.split(vector, [num_heads * k * (d + 1)])
        written, queried = written.reshape(-1, k, d + 1), queried.reshape(-1, d + 1, d)
        return residual(written, queried, image)

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = of_vector(vector)
        return float(value), np.asarray(slope, np.float64)

    return evaluate
