"""Scores against loops and derivatives, ties, and what is never selected."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.selection import scores

M, D, L, H = 7, 3, 3, 2
E = D + 1
select = jax.jit(scores.select, static_argnums=1)
encode_flow = jax.jit(scores.encode_flow)


def draw(seed=0):
    """A pool [m, e], a query [d], what the weights know [d], and weights [L, H, e, e]."""
    rng = np.random.default_rng(seed)
    weights = Params(*(0.4 * rng.normal(size=(2, L, H, E, E))))
    drawn = rng.normal(size=(M, E)), rng.normal(size=D), rng.normal(size=D), weights
    return jax.tree.map(jnp.asarray, drawn)


def cosine(x, query):
    return x @ query / np.linalg.norm(x) / np.linalg.norm(query)


def test_every_score_is_what_a_loop_computes():
    pool, query, prior, _ = draw()
    flow = jnp.asarray(np.random.default_rng(1).normal(size=(M, E)))
    by_hand = [
        (scores.flow_norm(flow), lambda x, y, g: np.sqrt(sum(g**2))),
        (scores.flow_times_input(flow, pool), lambda x, y, g: abs(g[:D] @ x + g[D] * y)),
        (scores.contribution(pool, query), lambda x, y, g: abs(x @ query * y)),
        (scores.contribution(pool, query, prior), lambda x, y, g: abs(x @ query * (y - x @ prior))),
        (scores.relevance(pool, query), lambda x, y, g: abs(x @ query)),
        (scores.similarity(pool, query), lambda x, y, g: cosine(x, query)),
        (scores.residual(pool, query), lambda x, y, g: abs(y)),
        (scores.residual(pool, query, prior), lambda x, y, g: abs(y - x @ prior)),
    ]
    by_hand.append((scores.cosine(pool[:, :D], query), lambda x, y, g: cosine(x, query)))
    rows = np.array(pool)
    for found, one in by_hand:
        expected = [one(row[:D], row[D], np.array(g)) for row, g in zip(rows, flow, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_flow_norm_neither_underflows_nor_overflows(scale):
    flow = jnp.asarray(np.random.default_rng(0).normal(size=(M, E, E)))  # to a whole token
    expected = np.linalg.norm(np.array(flow).reshape(M, -1), axis=1)
    np.testing.assert_allclose(scores.flow_norm(scale * flow) / scale, expected, rtol=1e-12)
    np.testing.assert_array_equal(scores.flow_norm(0 * flow), 0)
    with pytest.raises(ValueError, match="flow"):  # of all layers
        scores.flow_norm(flow[:, :, :2])


@partial(jax.jit, static_argnames="keys")
def one_shot(params, token, query_token, keys="demonstrations"):
    """The query's token [L, e] after each layer of a prompt of one demonstration."""
    tokens = jnp.stack([token, query_token])
    return linear_attention.forward(params, tokens, keys=keys).stream[1:, -1]


slopes = jax.jit(jax.jacfwd(one_shot, argnums=1), static_argnames="keys")


@pytest.mark.parametrize("keys", ["demonstrations", "all"])
def test_grads_is_the_squared_norm_of_the_jacobian(keys):
    pool, query, _, params = draw()
    head = jax.tree.map(lambda w: w[:1, :1], params)
    token = jnp.pad(query, (0, 1))
    jacobians = np.array([slopes(head, row, token, keys=keys)[0] for row in pool])
    encoding = scores.encode(head.w_kq[0, 0], head.w_pv[0, 0], pool)
    whole = (jacobians**2).sum((1, 2))
    np.testing.assert_allclose(scores.grads(encoding, token), whole, rtol=1e-10)
    turned = scores.encode(head.w_kq[0, 0].T, head.w_pv[0, 0], pool)  # Control: Kᵀ in K's place
    assert np.abs(scores.grads(turned, token) / whole - 1).max() > 0.1


def test_an_encoded_flow_is_that_of_every_layer_for_every_query():
    pool, query, _, params = draw()
    encoded = encode_flow(params, pool)
    assert encoded.shape == (L, M, E, E)
    for token in (jnp.pad(query, (0, 1)), jnp.pad(-2 * query, (0, 1), constant_values=0.3)):
        flows = np.array([-slopes(params, row, token)[:, -1] for row in pool]).swapaxes(0, 1)
        np.testing.assert_allclose(encoded @ token, flows, atol=1e-10)
    read = np.array([-slopes(params, row, token, keys="all")[:, -1] for row in pool])
    assert np.abs(read.swapaxes(0, 1) - encoded @ token)[1:].max() > 0.01  # Control: read queries


def test_random_scores_follow_the_key_and_a_zero_token_is_similar_to_nothing():
    pool, query, _, _ = draw()
    one, two = (scores.random(pool, query, jax.random.key(seed)) for seed in range(2))
    assert (one != two).all()
    assert scores.similarity(0 * pool, query).tolist() == [0] * M


def test_the_best_come_first_and_ties_go_to_the_lower_index():
    values = jnp.array([0.0, 2.0, -0.0, 3.0, 2.0, -1.0, 0.0])
    for run in (scores.select, select):
        assert run(values, 7).tolist() == [3, 1, 4, 0, 2, 6, 5]
        assert run(values, 2).tolist() == [3, 1]
    assert jax.vmap(partial(scores.select, size=2))(jnp.stack([values, -values])).tolist() == [
        [3, 1],
        [5, 0],
    ]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_not_ranked(bad):
    values = jnp.array([1.0, bad, 2.0])
    with pytest.raises(ValueError, match="scores"):
        scores.select(values, 1)
    assert select(values, 3).tolist() == [2, 0, 3]  # under jit: an index outside the pool
