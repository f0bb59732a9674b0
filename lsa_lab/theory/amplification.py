"""Closed forms of A1: the flow from one demonstration to the query, and its growth with depth.

Tokens are vectors: d = [x, y] is the demonstration, q = [x_query, 0] the query, a the query's whole
token after the layer. P = w_pv and K = w_kq are the merged weights of the one head, and nothing is
divided by n; s = d·Kq is the relevance of d, P d the content it writes. One layer is

    a = q + P (d dᵀ + q qᵀ) K q,

and a mask that hides the query takes away q qᵀ, which does not involve d. Of n demonstrations each
has this flow and contribution, divided by n if the model divides by n. A token has no sign: the
library reads ŷ = -(label slot), so ∂ŷ/∂d is minus the last row of the Jacobian. The flows of
gradient descent are those of ŷ itself. (A1's model and its Eq. 2: 2508.00385; all else is derived
here, docs/theory, "The one-shot flow", "The amplification theorem".)
"""

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least


def relevance(w_kq: Array, demonstration: Array, query: Array) -> Array:  # []
    """Return s = d·Kq, the score with which the query reads the demonstration."""
    _check(w_kq, w_kq, demonstration, query)
    return demonstration @ (w_kq @ query)


def contribution(w_kq: Array, w_pv: Array, demonstration: Array, query: Array) -> Array:  # [e]
    """Return a(with d) - a(without d) = s P d, the change by the demonstration in one layer."""
    _check(w_kq, w_pv, demonstration, query)
    return relevance(w_kq, demonstration, query) * (w_pv @ demonstration)


def one_shot_jacobian(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array
) -> Array:  # [e, e]
    """Return J = ∂a/∂d = P (s I + d (Kq)ᵀ), the output's axis first.

    It is A1's Eq. 2 in our reading (docs/theory, "The one-shot flow"). J d is twice the
    contribution. J is 0 if and only if P = 0, or s = 0 and (P d = 0 or K q = 0); the contribution
    is 0 if s = 0 or P d = 0.
    """
    _check(w_kq, w_pv, demonstration, query)
    queried = w_kq @ query
    return (demonstration @ queried) * w_pv + jnp.outer(w_pv @ demonstration, queried)


def self_coupling(w_kq: Array, w_pv: Array, demonstration: Array) -> Array:  # []
    """Return κ = d·K P d, the query's score of the content P d; the query is not in it."""
    _check(w_kq, w_pv, demonstration)
    return demonstration @ (w_kq @ (w_pv @ demonstration))


def geometric_gain(coupling: Array, num_layers: int) -> Array:  # [L+1]
    """Return ((1 + κ)^l - 1)/κ = 1 + (1 + κ) + ... + (1 + κ)^{l-1} for l = 0, ..., L; l at κ = 0.

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
    """Return the query's token after each of L equal, masked layers if the demonstration stays d.

    q_l = q + ((1 + κ)^l - 1)/κ · s P d, κ = d·K P d (docs/theory, "The frozen demonstration"). In a
    real stack the demonstration stays where d·K d = 0. Contributions compare as in one layer, times
    the ratio of the gains: self-coupling decides on growth, and relevance does not. The Jacobian
    obeys no such rule.
    """
    one_layer = contribution(w_kq, w_pv, demonstration, query)
    gain = geometric_gain(self_coupling(w_kq, w_pv, demonstration), num_layers)
    return query[None] + gain[:, None] * one_layer[None]


def one_coordinate_ratio(
    gain: Array,  # []  P K
    demonstrations: Array,  # [2]
    query: Array,  # []
    depths: Array,  # [K]
) -> Array:  # [K]
    """Return |∂q/∂d| of the first demonstration over the second's, for unmasked tokens of width 1.

    The token (d, q) moves on its ray, r ← r + a r³ with r² = d² + q². In the limit of many small
    layers, q_L = q (1 - 2aL r²)^{-1/2}, and the ratio is (docs/theory, "The one-coordinate law")

        R(L) = |d_1/d_2| · ((1 - 2aL r_2²)/(1 - 2aL r_1²))^{3/2}.

    For |d_1| > |d_2| it grows for a > 0 and falls for a < 0, to |d_1/d_2| (r_2/r_1)³: it can cross
    1. A demonstration blows up at L = 1/(2a r²): after that R is ∞ or 0, and NaN after both have.
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
    """Return ∂ŷ_l/∂y of ``constructions.gradient_descent`` with one demonstration; ŷ_l is y times
    it.

    (x·x_query/|x|²)(1 - Π_{t ≤ l} (1 - η_t |x|²)), written without the division (docs/theory, "The
    one-shot descent flow"). For one step size it is η x·x_query times the ``geometric_gain`` of
    κ = -η|x|²: if η|x|² < 1, depth favours the shorter demonstration, and amplifies if that is the
    more relevant one.
    """
    chex.assert_rank([step_sizes, x, x_query], 1, custom_message="[L], x [d] and x_query [d]")
    return (x @ x_query) * _damped_sum(step_sizes, 1 - step_sizes * (x @ x))[1:]


def _damped_sum(terms: Array, factors: Array) -> Array:  # [L], [L] -> [L+1]
    """Return Σ_{t ≤ l} terms_t Π_{j < t} factors_j for l = 0, ..., L."""
    before = jnp.pad(jnp.cumprod(factors), (1, 0), constant_values=1)[:-1]
    return jnp.pad(jnp.cumsum(terms * before), (1, 0))


def _check(w_kq: Array, w_pv: Array, *tokens: Array) -> None:
    chex.assert_rank(tokens, 1, custom_message="a token is [e]; use jax.vmap for a pool")
    e = len(tokens[0])
    chex.assert_shape(tokens, (e,), custom_message="demonstration and query are equally wide")
    chex.assert_shape([w_kq, w_pv], (e, e), custom_message=f"weights are one head [e, e], e = {e}")
