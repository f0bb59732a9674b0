"""The experiment on encoded demonstrations: encoded flows are the flows, and what they cost."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.offline_encoding import compute
from experiments.flow.offline_encoding.config import FLOWS, RULES
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models.linear_attention import Params
from lsa_lab.selection import scores


def draw(m=12, e=4, layers=3):
    rng = np.random.default_rng(0)
    weights = 0.3 * rng.normal(size=(2, layers, 1, e, e))
    return Params(*weights), rng.normal(size=(m, e)), np.append(rng.normal(size=e - 1), 0.0)


def test_flows_of_the_whole_pool_are_linear_in_the_query():
    params, pool, query = draw()
    encoded = jax.jit(compute.encode_together)(params, pool)
    online = jax.jit(compute.score_online)(params, pool, query)
    np.testing.assert_allclose(compute.score(encoded, query), online, rtol=1e-10)
    alone = compute.score(jax.jit(compute.encode_alone)(params, pool), query)
    assert np.abs(alone / online - 1).max() > 0.1


def test_the_compiler_counts_what_is_counted_by_hand():
    (m, e), counts = (200, 9), compute.operations(*draw(m=200, e=9))
    # 4me + 2e² of Eq. 2, 2me² + 2me of a linear map
    by_hand = {"Eq. 2, encoded": 4 * m * e + 2 * e**2, "pool, encoded": 2 * m * e**2 + 2 * m * e}
    for way, number in by_hand.items():
        assert abs(counts[way] / number - 1) < 0.25


def test_the_encoding_of_one_layer_gives_the_square_of_equation_2():
    params, pool, query = draw(layers=1)
    squares = scores.grads(compute.encode_one_layer(params, pool), query)
    u = params.w_kq[0, 0] @ query
    flows = [(d @ u) * params.w_pv[0, 0] + np.outer(params.w_pv[0, 0] @ d, u) for d in pool]
    np.testing.assert_allclose(squares, [(flow**2).sum() for flow in flows], rtol=1e-10)


SPEC = Spec(Task(2, (6,)), Architecture(1), Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1))
MODELS = (("linear attention", SPEC),)


def test_the_correlation_of_ranks_knows_order_alone():
    correlate = jax.jit(compute.rank_correlation)
    left, right = jnp.array([1.0, 30.0, 2.0, 5.0]), jnp.array([0.1, 0.2, 0.3, 0.4])
    # Ranks 0, 3, 1, 2 beside 0, 1, 2, 3: 1 - 6 (0 + 4 + 1 + 1) / (4 · 15).
    assert abs(correlate(left, right) - 0.4) < 1e-12
    assert abs(correlate(left, -(left**3)) + 1) < 1e-12


def test_queries_have_the_task_of_the_pool():
    config = SimpleNamespace(models=MODELS, pool=6, queries=5)
    pool, x, y = compute.draw(jax.random.key(0), config)
    w = np.linalg.lstsq(pool.x, pool.y, rcond=None)[0]
    np.testing.assert_allclose(pool.x @ w, pool.y, atol=1e-10)
    np.testing.assert_allclose(x @ w, y, atol=1e-10)
    assert len(np.unique(x)) == 10


def test_errors_are_those_of_demonstrations_that_a_rule_picks():
    config = SimpleNamespace(models=MODELS, pool=6, queries=3, shots=2)
    weights = np.zeros((2, 1, 1, 3, 3))
    weights[0, 0, 0, :2, :2], weights[1, 0, 0, 2, 2] = np.eye(2), -0.5
    params, key = Params(*jnp.asarray(weights)), jax.random.key(1)
    ranks, errors = jax.jit(lambda key: compute.pool_measures(config, params, key))(key)
    pool, queries, targets = (jax.tree.map(np.asarray, part) for part in compute.draw(key, config))
    total = 0
    for query, target in zip(queries, targets, strict=True):
        cosines = pool.x @ query / np.linalg.norm(pool.x, axis=1)
        picks = np.argsort(-cosines)[:2]
        predicted = sum(0.5 * pool.y[i] * (pool.x[i] @ query) for i in picks) / 2
        total += (predicted - target) ** 2 / 3
    assert abs(ranks[FLOWS.index("alone")] - 1) < 1e-12  # one layer adds demonstrations up
    np.testing.assert_allclose(errors[RULES.index("similarity")], total, rtol=1e-9)
