"""Closed forms of A1: the flow from one demonstration to the query, and what depth makes of it.

Tokens are vectors: d = [x, y] is the demonstration, q = [x_query, 0] the query, a the query's whole
token after the layer. P = w_pv and K = w_kq are the merged weights of the one head, and nothing is
divided by n; s = d·Kq is the relevance of d, P d the content it writes. One layer is

    a = q + P (d dᵀ + q qᵀ) K q,

and a mask that hides the query takes away q qᵀ, which does not involve d. Of n demonstrations each
has its own flow and contribution, divided by n if the model divides by n. A token has no sign: the
library reads ŷ = -(label slot), so ∂ŷ/∂d is minus the last row of the Jacobian. The flows of
gradient descent are those of ŷ itself. (A1's model and its Eq. 2: 2508.00385; all else is derived
here, docs/theory, "The one-shot flow", "The amplification theorem".)
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least


def relevance(w_kq: Array, demonstration: Array, query: Array) -> Array:  # []
    """s = d·Kq, the score with which the query reads the demonstration."""
    _check(w_kq, w_kq, demonstration, query)
    return demonstration @ (w_kq @ query)


def contribution(w_kq: Array, w_pv: Array, demonstration: Array, query: Array) -> Array:  # [e]
    """a(with d) - a(without d) = s P d: exactly what the demonstration changes in one layer."""
    _check(w_kq, w_pv, demonstration, query)
    return relevance(w_kq, demonstration, query) * (w_pv @ demonstration)


def radial_flow(w_kq: Array, w_pv: Array, demonstration: Array, query: Array) -> Array:  # [e]
    """J d = 2 s P d: flow times input is twice the contribution, of degree 2 in d (Euler)."""
    return 2 * contribution(w_kq, w_pv, demonstration, query)


def one_shot_jacobian(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array
) -> Array:  # [e, e]
    """J = ∂a/∂d = P (s I + d (Kq)ᵀ), the output's axis first.

    A1, Eq. 2, as we read it (docs/theory, "The one-shot flow").
    """
    _check(w_kq, w_pv, demonstration, query)
    queried = w_kq @ query
    return (demonstration @ queried) * w_pv + jnp.outer(w_pv @ demonstration, queried)


def one_shot_flow_norm_sq(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array
) -> Array:  # []
    """|J|_F² = s² |P|_F² + 2 s (P Kq)·(P d) + |P d|² |Kq|².

    For orthogonal P it is (e + 2) s² + |d|² |Kq|².
    """
    _check(w_kq, w_pv, demonstration, query)
    queried, written = w_kq @ query, w_pv @ demonstration
    score = demonstration @ queried
    joint = 2 * score * ((w_pv @ queried) @ written)
    return score**2 * (w_pv**2).sum() + joint + (written @ written) * (queried @ queried)


class Degeneracy(flax.struct.PyTreeNode):
    """Zeros of Eq. 2. A1 is read as: no flow if irrelevant or learned. That is exact for the
    contribution and the radial flow; the Jacobian is zero iff P = 0, or s = 0 and (P d = 0 or
    K q = 0), since det(s I + d (Kq)ᵀ) = 2 sᵉ."""

    irrelevant: Array  # []  s = 0
    learned: Array  # []  P d = 0
    contribution_vanishes: Array  # []
    flow_vanishes: Array  # []


def degeneracy(w_kq: Array, w_pv: Array, demonstration: Array, query: Array) -> Degeneracy:
    """What is zero in Eq. 2: a product is, below 10 e units of rounding of its factors' sizes."""
    _check(w_kq, w_pv, demonstration, query)
    w_kq, w_pv, demonstration, query = map(as_floats, (w_kq, w_pv, demonstration, query))
    rounding = 10 * len(query) * jnp.finfo(query.dtype).eps
    queried, written = w_kq @ query, w_pv @ demonstration
    size_d, size_p = jnp.linalg.norm(demonstration), jnp.linalg.norm(w_pv)
    smallest = rounding * jnp.linalg.norm(w_kq) * jnp.linalg.norm(query)
    irrelevant = jnp.abs(demonstration @ queried) <= smallest * size_d
    learned = jnp.linalg.norm(written) <= rounding * size_p * size_d
    both = irrelevant & (learned | (jnp.linalg.norm(queried) <= smallest))
    return Degeneracy(irrelevant, learned, irrelevant | learned, both | (size_p == 0))


def self_coupling(w_kq: Array, w_pv: Array, demonstration: Array) -> Array:  # []
    """κ = d·K P d: how strongly the query reads d for having read d once. No query in it."""
    _check(w_kq, w_pv, demonstration)
    return demonstration @ (w_kq @ (w_pv @ demonstration))


def geometric_gain(coupling: Array, num_layers: int) -> Array:  # [L+1]
    """((1 + κ)^l - 1)/κ = 1 + (1 + κ) + ... + (1 + κ)^{l-1} for l = 0, ..., L; l at κ = 0.

    The gains of two demonstrations with κ_1, κ_2 > -1 have a ratio that strictly grows with l if
    κ_1 > κ_2, falls if κ_1 < κ_2 and stays if they are equal. It falls to zero, so that the order
    of any two contributions flips in the end, only if κ_2 ≥ 0; else it falls to κ_2/κ_1.
    """
    chex.assert_shape(coupling, (), custom_message="κ is a number; use jax.vmap")
    check_at_least(num_layers, "num_layers", 0)
    factors = jnp.full((num_layers,), 1 + as_floats(coupling))
    return _damped_sum(jnp.ones_like(factors), factors)


def frozen_demonstration(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array, num_layers: int
) -> Array:  # [L+1, e]
    """The query's token after each of L equal layers whose one demonstration stays as it was.

    q_l = q + ((1 + κ)^l - 1)/κ · s P d, κ = d·K P d, masked (docs/theory, "The frozen
    demonstration"). In a real stack it stays where d·K d = 0. Contributions compare as in one
    layer, times the ratio of the gains: self-coupling decides what depth does, not relevance. The
    Jacobian obeys no such rule.
    """
    one_layer = contribution(w_kq, w_pv, demonstration, query)
    gain = geometric_gain(self_coupling(w_kq, w_pv, demonstration), num_layers)
    return query[None] + gain[:, None] * one_layer[None]


def frozen_demonstration_untied(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array
) -> Array:  # [L+1, e]
    """q_l = (I + P_l d dᵀ K_l) ... (I + P_1 d dᵀ K_1) q.

    docs/theory, "The frozen demonstration".
    """
    chex.assert_rank([w_kq, w_pv], 3, custom_message="untied weights are [L, e, e]")
    _check(w_kq[0], w_pv[0], demonstration, query)
    return _walk(w_kq, w_pv, demonstration, query)


@jax.jit
def _walk(w_kq: Array, w_pv: Array, demonstration: Array, query: Array) -> Array:  # [L+1, e]
    def layer(token: Array, weights: tuple[Array, Array]) -> tuple[Array, Array]:
        asks, writes = weights
        token = token + (asks @ token) * writes
        return token, token

    reads = jnp.einsum("d,lde->le", demonstration, w_kq)
    _, later = jax.lax.scan(layer, query, (reads, w_pv @ demonstration))
    return jnp.concatenate([query[None], later])


def one_coordinate_ratio(
    gain: Array,  # []  P K
    demonstrations: Array,  # [2]
    query: Array,  # []
    depths: Array,  # [K]
) -> Array:  # [K]
    """|∂q/∂d| of the first demonstration over the second's, for tokens of width 1 without a mask.

    The token (d, q) moves on its ray, r ← r + a r³ with r² = d² + q². In the limit of many small
    layers, q_L = q (1 - 2aL r²)^{-1/2}, and the ratio is (docs/theory, "The one-coordinate law")

        R(L) = |d_1/d_2| · ((1 - 2aL r_2²)/(1 - 2aL r_1²))^{3/2}.

    For |d_1| > |d_2| it grows for a > 0 and falls for a < 0, to |d_1/d_2| (r_2/r_1)³: it can cross
    1. A demonstration blows up at L = 1/(2a r²): once it has, R is ∞ or 0, and NaN after both have.
    """
    chex.assert_shape([gain, query], (), custom_message="gain and query are numbers; use jax.vmap")
    chex.assert_shape(demonstrations, (2,), custom_message="two demonstrations to compare")
    chex.assert_rank(depths, 1, custom_message="depths is [K]")
    left = [1 - 2 * gain * depths * (d**2 + query**2) for d in demonstrations]
    alive = [value > 0 for value in left]
    first, second = (jnp.where(*pair, 1) for pair in zip(alive, left, strict=True))
    ratio = jnp.abs(demonstrations[0] / demonstrations[1]) * (second / first) ** 1.5
    return jnp.select([alive[0] & alive[1], alive[1], alive[0]], [ratio, jnp.inf, 0.0], jnp.nan)


def one_shot_descent_flow(step_sizes: Array, x: Array, x_query: Array) -> Array:  # [L]
    """∂ŷ_l/∂y of ``constructions.gradient_descent`` with one demonstration; ŷ_l is y times it.

    (x·x_query/|x|²)(1 - Π_{t ≤ l} (1 - η_t |x|²)), written without the division (docs/theory, "The
    one-shot descent flow"). For one step size it is η x·x_query times the ``geometric_gain`` of
    κ = -η|x|²: if η|x|² < 1, depth favours the shorter demonstration, and amplifies where that is
    the more relevant one.
    """
    chex.assert_rank([step_sizes, x, x_query], 1, custom_message="[L], x [d] and x_query [d]")
    return (x @ x_query) * _damped_sum(step_sizes, 1 - step_sizes * (x @ x))[1:]


def many_shot_descent_flow(step_sizes: Array, x: Array, x_query: Array) -> Array:  # [L, n]
    """v_l = ∂ŷ_l/∂y of ``constructions.gradient_descent``; ŷ_l = v_l·y.

    v_l = v_{l-1} + η_l (k - G v_{l-1}) from v_0 = 0, G = XXᵀ/n and k = X x_query/n; for one step
    size η Σ_{t < l} (I - ηG)ᵗ k. It tends to G⁺k for 0 < η < 2/λ_max (docs/theory, "The many-shot
    descent flow").
    """
    chex.assert_rank([step_sizes, x, x_query], [1, 2, 1], custom_message="[L], x [n, d] and [d]")
    return _descent_flow(step_sizes, x, x_query)


@jax.jit
def _descent_flow(step_sizes: Array, x: Array, x_query: Array) -> Array:  # [L, n]
    gram, similarity = x @ x.T / len(x), x @ x_query / len(x)

    def step(flow: Array, step_size: Array) -> tuple[Array, Array]:
        flow = flow + step_size * (similarity - gram @ flow)
        return flow, flow

    return jax.lax.scan(step, jnp.zeros_like(similarity), step_sizes)[1]


def _damped_sum(terms: Array, factors: Array) -> Array:  # [L], [L] -> [L+1]
    """Σ_{t ≤ l} terms_t Π_{j < t} factors_j for l = 0, ..., L."""
    before = jnp.pad(jnp.cumprod(factors), (1, 0), constant_values=1)[:-1]
    return jnp.pad(jnp.cumsum(terms * before), (1, 0))


def _check(w_kq: Array, w_pv: Array, *tokens: Array) -> None:
    chex.assert_rank(tokens, 1, custom_message="a token is [e]; use jax.vmap for a pool")
    e = len(tokens[0])
    chex.assert_shape(tokens, (e,), custom_message="demonstration and query are equally wide")
    chex.assert_shape([w_kq, w_pv], (e, e), custom_message=f"weights are one head [e, e], e = {e}")
