"""Scores against loops and derivatives, recomputed picks, ties, and what is never selected."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_stack, jit_numpy
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import oracles, scores

M, D = 7, 3
E = D + 1
RNG = np.random.default_rng(0)
POOL, QUERY, PRIOR = RNG.normal(size=(M, E)), RNG.normal(size=D), RNG.normal(size=D)
FLOW, TOKEN = RNG.normal(size=(M, E)), np.append(QUERY, 0)
W_KQ, W_PV = 0.4 * RNG.normal(size=(2, E, E))
select = jit_numpy(scores.select, static_argnums=1)


def cosine(x):
    return x @ QUERY / np.linalg.norm(x) / np.linalg.norm(QUERY)


SCORES = {  # what is scored, and a loop's score of x, y and the flow g
    "norm": (scores.flow_norm(FLOW), lambda x, y, g: np.sqrt(sum(g**2))),
    "times input": (scores.flow_times_input(FLOW, POOL), lambda x, y, g: abs(g @ [*x, y])),
    "contribution": (scores.contribution(POOL, QUERY), lambda x, y, g: abs(x @ QUERY * y)),
    "contribution from a prior": (
        scores.contribution(POOL, QUERY, PRIOR),
        lambda x, y, g: abs(x @ QUERY * (y - x @ PRIOR)),
    ),
    "relevance": (scores.relevance(POOL, QUERY), lambda x, y, g: abs(x @ QUERY)),
    "similarity": (scores.similarity(POOL, QUERY), lambda x, y, g: cosine(x)),
    "residual": (scores.residual(POOL, QUERY), lambda x, y, g: abs(y)),
    "residual of a prior": (
        scores.residual(POOL, QUERY, PRIOR),
        lambda x, y, g: abs(y - x @ PRIOR),
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_every_score_is_what_a_loop_computes(name):
    found, score = SCORES[name]
    expected = [score(row[:D], row[D], g) for row, g in zip(POOL, FLOW, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_flow_norm_of_whole_tokens_neither_underflows_nor_overflows():
    flow = RNG.normal(size=(M, E, E))
    expected = np.linalg.norm(flow.reshape(M, -1), axis=1)
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(scores.flow_norm(scale * flow) / scale, expected, rtol=1e-12)
    np.testing.assert_array_equal(scores.flow_norm(0 * flow), 0)


@pytest.mark.parametrize("keys", ["demonstrations", "all"])
def test_grads_is_the_squared_norm_of_the_jacobian(keys):
    head = linear_attention.Params(W_KQ[None, None], W_PV[None, None])

    def one_shot(row):  # the query's token after the layer, of a prompt of one demonstration
        return linear_attention.forward(head, jnp.stack([row, TOKEN]), keys=keys).stream[1, -1]

    whole = (jit_numpy(jax.vmap(jax.jacfwd(one_shot)))(POOL) ** 2).sum((1, 2))
    found = scores.grads(scores.encode(W_KQ, W_PV, POOL), TOKEN)
    np.testing.assert_allclose(found, whole, rtol=1e-10)
    turned = scores.grads(scores.encode(W_KQ.T, W_PV, POOL), TOKEN)  # Control: Kᵀ in K's place
    assert np.abs(turned / whole - 1).max() > 0.1


def test_random_scores_follow_the_key_and_a_zero_token_is_similar_to_nothing():
    one, two = (scores.random(POOL, QUERY, jax.random.key(seed)) for seed in range(2))
    assert (one != two).all()
    assert scores.similarity(0 * POOL, QUERY).tolist() == [0] * M


def test_the_best_come_first_and_ties_go_to_the_lower_index():
    values = np.array([0.0, 2.0, -0.0, 3.0, 2.0, -1.0, 0.0])
    for run in (scores.select, select):
        assert run(values, 7).tolist() == [3, 1, 4, 0, 2, 6, 5]
        assert run(values, 2).tolist() == [3, 1]
    many = jax.vmap(partial(scores.select, size=2))(np.stack([values, -values]))
    assert many.tolist() == [[3, 1], [5, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_not_ranked(bad):
    values = np.array([1.0, bad, 2.0])
    with pytest.raises(ValueError, match="scores"):
        scores.select(values, 1)
    assert select(values, 3).tolist() == [2, 0, 3]  # under jit: an index outside the pool


def fit(chosen):
    """The shortest weights of least squares on the chosen rows."""
    return jnp.linalg.pinv(chosen[:, None] * POOL[:, :-1]) @ (chosen * POOL[:, -1])


def mark(indices):
    return np.isin(np.arange(M), indices).astype(float)


def test_picking_is_a_loop_over_picks():
    score = jax.jit(lambda chosen: scores.contribution(POOL, QUERY, fit(chosen)))
    chosen, expected = mark([4]), []
    picked = oracles.pick_greedily(score, chosen, 3)
    for _ in range(3):
        values = np.asarray(score(chosen))
        expected.append(int(np.where(chosen == 0, values, -1).argmax()))
        chosen[expected[-1]] = 1
    assert picked.tolist() == expected
    assert 4 not in expected


def test_a_candidate_has_the_flow_of_a_prompt_with_it():
    params = draw_stack(RNG, 2, 2, D + 1, 0.4)
    run = jit_numpy(partial(amplification.demonstration_flow, linear_attention.forward))

    def flow(i):  # of the last demonstration
        rows = POOL[[1, 4, i]]
        return run(params, Prompt(rows[:, :-1], rows[:, -1], QUERY, np.zeros(())))[:, -1]

    candidates = jit_numpy(oracles.candidate_flows)
    found, alone = (candidates(params, POOL, QUERY, mark(start)) for start in ([1, 4], []))
    np.testing.assert_allclose(found, np.stack([flow(i) for i in range(M)], 1), atol=1e-10)
    encoded = scores.encode_flow(params, POOL)  # one matrix for every query
    np.testing.assert_allclose(alone, encoded @ np.append(QUERY, 0), atol=1e-10)
    other = candidates(params, POOL, -QUERY[::-1], mark([]))
    np.testing.assert_allclose(other, encoded @ np.append(-QUERY[::-1], 0), atol=1e-10)


@pytest.mark.parametrize("start", [[], [0, 2, 3], list(range(M))])
def test_leaving_out_is_removal_inside_and_addition_outside(start):
    error = jax.jit(lambda chosen: (fit(chosen) @ QUERY - QUERY @ PRIOR) ** 2)
    without, added = (
        np.array([error(mark(change(i))) for i in range(M)])
        for change in (lambda i: [j for j in start if j != i], lambda i: [*start, i])
    )
    for run in (oracles.leave_one_out, jax.jit(oracles.leave_one_out, static_argnums=0)):
        np.testing.assert_allclose(run(error, mark(start)), without - added, atol=1e-12)


def test_nan_and_other_marks_are_refused_and_under_jit_never_picked():
    with pytest.raises(ValueError, match="chosen"):
        oracles.leave_one_out(lambda chosen: chosen.sum(), np.array([0.5, 1.0]))
    values = jnp.array([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="at pick 0"):
        oracles.pick_greedily(lambda chosen: values, np.zeros(3), 2)
    picked = jax.jit(lambda: oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 3))()
    assert picked.tolist() == [2, 0, 3]
    after = oracles.pick_greedily(  # a chosen one's score may be NaN
        lambda chosen: jnp.where(chosen > 0, jnp.nan, jnp.arange(3.0)), np.zeros(3), 3
    )
    assert after.tolist() == [2, 1, 0]
