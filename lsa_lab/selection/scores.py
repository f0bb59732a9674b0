"""Scores of demonstrations: GradS (A1) and its baselines, the larger the better.

A pool is demonstration tokens e_i = [x_i, y_i], [m, e]; a query is x_query [d], or its token
[x_query, 0] where weights act on it. A score is for one query; ``jax.lax.map`` takes many.
Demonstrations of several tokens, and tokens without a label, have ``cosine`` and the sizes of a
flow by spans, exp(amplification.log_sizes(flow, spans)) [L, m].
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_byte_order, check_finite, check_size, choose_batch_size
from lsa_lab.models.linear_attention import Params, check_params
from lsa_lab.scaling import length, scale_near_one


def flow_norm(flow: Array) -> Array:  # [m, e] or [m, e, e] -> [m]
    """Return the score of GradS: |∂ŷ/∂e_i|, the norm of each demonstration's flow.

    Give the flow of one layer, ``flow[layer]``, of a prediction or of a whole token. Which norm and
    which layer A1 (2508.00385) takes is not public (docs/theory, "Scores of demonstrations").
    Raises ValueError for [a, b, c] with b ≠ c, such as a flow [L, n, e] of all layers.
    """
    chex.assert_rank(flow, {2, 3}, custom_message="a flow is that of one layer, flow[layer]")
    if flow.ndim == 3 and flow.shape[1] != flow.shape[2]:
        raise ValueError(
            f"flow is {flow.shape}: of a flow [L, n, e] give one layer, flow[layer]; of a whole "
            "token's [m, e, D] with a read-in give flow.reshape(m, -1)"
        )
    return length(flow.reshape(len(flow), -1))


def flow_times_input(flow: Array, pool: Array) -> Array:  # [m, e] x 2 -> [m]
    """Return |∂ŷ/∂e_i · e_i|, in one layer twice the contribution, by Euler (derived here).

    Unlike the norm it vanishes if the demonstration is irrelevant, and if it is already learned
    (docs/theory, "Flow times input").
    """
    chex.assert_equal_shape([_matrix(flow), pool], custom_message="flow and pool are both [m, e]")
    return jnp.abs((flow * pool).sum(-1))


def contribution(pool: Array, query: Array, prior_mean: Array | None = None) -> Array:  # [m]
    """Return |s_i r_i|: relevance s_i = x_i·x_query times residual r_i = y_i - w0·x_i.

    Prior attention writes this number into the query's slot, up to its step size. w0 [d] is 0 by
    default (derived here; docs/theory, "Attention with a prior").
    """
    return relevance(pool, query) * residual(pool, query, prior_mean)


def relevance(pool: Array, query: Array) -> Array:  # [m]
    """Return |x_i·x_query|."""
    return jnp.abs(_covariates(pool, query) @ query)


def similarity(pool: Array, query: Array) -> Array:  # [m]
    """Return the cosine between x_i and x_query; 0 if one of them is zero."""
    return cosine(_covariates(pool, query), query)


def cosine(rows: Array, row: Array) -> Array:  # [m, p], [p] -> [m]
    """Return the cosines of rows without a label, such as embeddings of texts, with one row."""
    chex.assert_shape(row, (_matrix(rows).shape[1],), custom_message="one row [p], p as in rows")
    rows, row = scale_near_one(rows, -1)[0], scale_near_one(row, -1)[0]
    product = length(rows) * length(row)
    return jnp.where(product == 0, 0, rows @ row / jnp.where(product == 0, 1, product))  # NaN: NaN


def residual(pool: Array, query: Array, prior_mean: Array | None = None) -> Array:  # [m]
    """Return |y_i - w0·x_i|, which does not depend on the query; w0 [d] is 0 by default."""
    if prior_mean is not None:
        chex.assert_equal_shape([prior_mean, query], custom_message="prior_mean is [d]")
    x, y = _covariates(pool, query), pool[:, -1]
    return jnp.abs(y if prior_mean is None else y - x @ prior_mean)


def random(pool: Array, query: Array, key: Array) -> Array:  # [m]
    """Draw uniform numbers; queries with the same key get the same demonstrations."""
    return jax.random.uniform(key, _covariates(pool, query).shape[:1], jnp.result_type(pool))


def select(scores: Array, size: int) -> Array:  # [m] -> [size]
    """Return the indices of the highest scores, best first; of equal ones the lower index first.

    A NaN or an infinity is an error. Under jit or vmap, where nothing can be raised, such
    demonstrations are never selected; if too few others are left, their places hold m, an index
    outside the pool.
    """
    chex.assert_rank(scores, 1, custom_message="scores are [m], of one query; vmap over many")
    chex.assert_type(scores, float)
    m = scores.shape[0]
    size = check_size(size, m)
    check_finite(scores, "scores")
    ranked = jnp.where(scores == 0, 0, scores)  # top_k takes 0.0 to be larger than -0.0
    best, indices = jax.lax.top_k(jnp.where(jnp.isfinite(ranked), ranked, -jnp.inf), size)
    return jnp.where(best == -jnp.inf, m, indices.astype(int))  # top_k knows int32 alone


class Encoding(flax.struct.PyTreeNode):
    """The parts of A1's Eq. 2, K = w_kq and P = w_pv, that do not depend on the query."""

    w_kq: Array  # [e, e]
    keys: Array  # [m, e]  Kᵀe_i
    pulled: Array  # [m, e]  PᵀPe_i
    written_square: Array  # [m]  |Pe_i|²
    weight_square: Array  # []  |P|²


def encode(w_kq: Array, w_pv: Array, pool: Array) -> Encoding:
    """Compute the offline part of GradS, in O(m e²); a query then costs O(m e)."""
    e = _matrix(pool).shape[1]
    chex.assert_shape([w_kq, w_pv], (e, e), custom_message="one head's weights [e, e], e as pool")
    written = pool @ w_pv.T
    square = (written**2).sum(-1)
    return Encoding(w_kq, pool @ w_kq, written @ w_pv, square, (w_pv**2).sum())


def grads(encoding: Encoding, query_token: Array) -> Array:  # [e] -> [m]
    """Return |∂a/∂e_i|²_F of one layer a = q + P(e_i e_iᵀ + qqᵀ)Kq, e_i alone in the prompt.

    s²|P|² + 2s uᵀPᵀPe + |Pe|²|u|² with u = Kq, s = e·u, whether or not the query is a key (A1
    2508.00385, Eq. 2, its norm derived here; docs/theory, "The one-shot flow").
    """
    e = encoding.w_kq.shape[0]
    chex.assert_shape(query_token, (e,), custom_message="the token [x_query, 0], not x_query")
    u, s = encoding.w_kq @ query_token, encoding.keys @ query_token
    joint = 2 * s * (encoding.pulled @ u)
    square = s**2 * encoding.weight_square + joint + encoding.written_square * (u @ u)
    return jnp.maximum(square, 0)


def encode_flow(params: Params, pool: Array) -> Array:  # [m, e] -> [L, m, e, e]
    """Compute F: F[layer] @ query_token is the flow ∂ŷ/∂e_i [m, e] of each e_i alone in a prompt.

    It is exact for keys="demonstrations" at any depth: the prediction is linear in the query, by
    one matrix of the demonstration (docs/theory, "Moments suffice"), and so is its derivative. One
    F serves all queries, in memory L m e².
    """
    check_params(params, "an encoded flow")
    e = _matrix(pool).shape[1]
    chex.assert_shape([params.w_kq, params.w_pv], (None, None, e, e))
    return _encoded_flow(params, pool)


@jax.jit
def _encoded_flow(params: Params, pool: Array) -> Array:  # [L, m, e, e]
    slopes = jax.jacfwd(lambda token: _read_row(params, token))  # [L, e, e], ∂e_i last
    return jnp.moveaxis(
        jax.lax.map(slopes, pool, batch_size=choose_batch_size(None, 256)), 0, 1
    ).swapaxes(-1, -2)


def _read_row(params: Params, token: Array) -> Array:  # [L, e]
    """Return -(W_l)_{e,:}, which takes the query to ŷ_l, for a prompt of one demonstration.

    W_l = I + Σ_k b_k a_kᵀ over the layers and heads so far, b = w_pv W e and a = Wᵀ w_kqᵀ W e: no
    product of two matrices is ever formed.
    """
    num_layers, _, e, _ = params.w_kq.shape
    written = queried = jnp.zeros((0, e), token.dtype)  # b, a
    for w_kq, w_pv in zip(params.w_kq, params.w_pv, strict=True):
        now = token + (queried @ token) @ written
        read = now @ w_kq  # [H, e]
        queried = jnp.concatenate([queried, read + read @ written.T @ queried])
        written = jnp.concatenate([written, w_pv @ now])
    terms = (written[:, -1:] * queried).reshape(num_layers, -1, e).sum(1)
    return -(jnp.zeros_like(token).at[-1].set(1)[None] + jnp.cumsum(terms, axis=0))


def _covariates(pool: Array, query: Array) -> Array:  # [m, d]
    d = _matrix(pool).shape[1] - 1
    chex.assert_shape(query, (d,), custom_message="query is x_query [d], pool [m, d+1]")
    return pool[:, :-1]


def _matrix(rows: Array) -> Array:  # [m, e]
    chex.assert_rank(rows, 2, custom_message="a pool, or a flow, is [m, e], a row for each pair")
    check_byte_order(rows, "pool")
    return rows
