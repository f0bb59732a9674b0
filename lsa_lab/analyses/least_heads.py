"""The fewest heads with which a layer of linear attention can compute what it computes.

Heads are not unique (``head_gauge``), so the least number is a minimum over all heads that write
the same tensor M. From below: where all demonstrations are u, S = uuᵀ, a head writes multiples of
one vector, w_pv_h u, and so the update M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most, for
complex u too. From above: a search (both derived here; docs/theory, "The fewest heads").
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.models import head_gauge
from lsa_lab.models.linear_attention import Params, check_params


def least_error(key: Array, params: Params, num_heads: int, samples: int = 4096) -> Array:  # [L]
    """A lower bound on |M - M'|/|M| for every layer M' of ``num_heads`` heads.

    By Eckart and Young |M_uu - M'_uu|² is at least the sum of the squares of M_uu's singular values
    after the first H. Over Gaussian u with complex entries E |X_uu|² = 2|X|² for every
    X symmetric in β and γ; of the u that are sampled, the mean is at most λ|X|², λ the largest
    eigenvalue of mean (uuᵀ)(uuᵀ)*. So |M - M'|² is at least the mean of the former over λ: a bound
    for every sample, whose size decides only how close it comes to the expectation.
    Zero where H is e or more.
    """
    check_params(params, "a bound on the heads")
    num_heads = check_at_least(num_heads, "num_heads", 0)
    return _least_error(key, params, num_heads, check_at_least(samples, "samples"))


@functools.partial(jax.jit, static_argnames=("num_heads", "samples"))
def _least_error(key: Array, params: Params, num_heads: int, samples: int) -> Array:  # [L]
    tensors = head_gauge.layer_tensor(params)
    e = tensors.shape[-1]
    parts = jax.random.normal(key, (2, samples, e), tensors.dtype) / 2**0.5
    u = jax.lax.complex(*parts)
    squares = (u[:, :, None] * u[:, None, :]).reshape(samples, e * e)
    largest = jnp.linalg.eigvalsh((squares.T @ squares.conj()).real / samples)[-1]

    def of_layer(tensor: Array) -> Array:
        flat = tensor.transpose(0, 3, 1, 2).reshape(e * e, e * e)  # rows (a, c)
        updates = (squares @ flat.T.astype(squares.dtype)).reshape(samples, e, e)
        values = jnp.linalg.svd(updates, compute_uv=False)
        missed = jnp.sum(values[:, num_heads:] ** 2, axis=1).mean() / largest
        return jnp.sqrt(missed / _or_one(jnp.sum(tensor**2)))

    return jax.lax.map(of_layer, tensors)


def refitted(
    key: Array, params: Params, num_heads: int, restarts: int = 10, sweeps: int = 300
) -> tuple[Params, Array]:  # Params of num_heads heads, [L]
    """The stack with every layer refitted by ``num_heads`` heads, and |M - M'|/|M| of each.

    Alternating least squares for w_pv and w_kq from ``restarts`` Gaussian starts and from the
    largest of the layer's own orthogonal heads; the best end. An upper bound on the least error.
    """
    check_params(params, "a refit of the heads")
    check_at_least(num_heads, "num_heads")
    check_at_least(restarts, "restarts", 0)
    sweeps = check_at_least(sweeps, "sweeps")
    own = head_gauge.orthogonal(params)[0].w_kq[:, :num_heads]  # [L, min(H, num_heads), e, e]
    num_layers, present, e, _ = own.shape
    starts = jax.random.normal(key, (num_layers, restarts + 1, num_heads, e, e), own.dtype)
    starts = starts.at[:, 0, :present].set(own).at[:, 0, present:].multiply(1e-3)
    w_pv, w_kq, errors = _refitted(head_gauge.layer_tensor(params), starts, sweeps)
    return Params(w_kq=w_kq, w_pv=w_pv), errors


@functools.partial(jax.jit, static_argnames="sweeps")
def _refitted(tensors: Array, starts: Array, sweeps: int) -> tuple[Array, Array, Array]:
    """w_pv, w_kq and their error of every layer, from the best of its starts."""

    def of_layer(given: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        tensor, starts = given
        ends = jax.lax.map(lambda start: _alternate(tensor, start, sweeps), starts)
        best = jnp.argmin(jnp.where(jnp.isfinite(ends[2]), ends[2], jnp.inf))
        return jax.tree.map(lambda leaf: leaf[best], ends)

    return jax.lax.map(of_layer, (tensors, starts))


def _alternate(
    tensor: Array, w_kq: Array, sweeps: int
) -> tuple[Array, Array, Array]:  # [H, e, e], [H, e, e], []
    """w_pv, w_kq and their relative error after so many solutions for each in turn."""
    transposed = tensor.transpose(3, 1, 2, 0)  # the roles of w_pv and w_kqᵀ exchanged

    def sweep(_: int, sides: tuple[Array, Array]) -> tuple[Array, Array]:
        asks = sides[1]
        writes = _solved(tensor, asks)
        writes = writes / _or_one(jnp.sqrt(jnp.mean(writes**2)))  # sizes neither vanish nor explode
        return writes, _solved(transposed, writes)

    asks = w_kq.swapaxes(1, 2)  # [H, c, γ]: both sides are now (outer index, index of S)
    writes, asks = jax.lax.fori_loop(0, sweeps, sweep, (asks, asks))
    other = jnp.einsum("hab,hcg->abgc", writes, asks)
    error = jnp.linalg.norm(tensor - (other + other.swapaxes(1, 2)) / 2)
    return writes, asks.swapaxes(1, 2), error / _or_one(jnp.linalg.norm(tensor))


def _or_one(size: Array) -> Array:
    """1 in the place of 0: a layer of zeros is fitted without an error."""
    return jnp.where(size == 0, 1, size)


def _solved(tensor: Array, asks: Array) -> Array:  # [e, e, e, e], [H, c, γ] -> [H, a, β]
    """The side that, with the other given, is nearest to the tensor: linear least squares.

    Its normal equations for (h, β), for each a:
    ½ Σ_g (⟨k_h, k_g⟩ w_g[β] + Σ_{cγ} k_g[c, β] k_h[c, γ] w_g[γ]) = Σ_{γc} M_{aβγc} k_h[c, γ].
    """
    num_heads, e, _ = asks.shape
    identity = jnp.eye(e, dtype=asks.dtype)
    products = jnp.einsum("hcx,gcx,by->hbgy", asks, asks, identity)
    crossed = jnp.einsum("gcb,hcx->hbgx", asks, asks)
    gram = ((products + crossed) / 2).reshape(num_heads * e, num_heads * e)
    right = jnp.einsum("abxc,hcx->hba", tensor, asks).reshape(num_heads * e, e)
    solution = jnp.linalg.pinv(gram, hermitian=True) @ right
    return solution.reshape(num_heads, e, e).swapaxes(1, 2)
