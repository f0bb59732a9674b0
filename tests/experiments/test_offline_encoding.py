"""The experiment on encoded demonstrations: encoded flows are the flows, and pick as they do; the
rules that `grads` selects by, and the result that is judged."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from experiments.flow.grads import compute as rules
from experiments.flow.grads.cases import Case
from experiments.flow.offline_encoding import compute
from experiments.flow.offline_encoding.config import FLOWS, RULES
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models.linear_attention import Params
from lsa_lab.selection import scores
from lsa_lab.store import results


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


def test_the_encoding_of_one_layer_gives_the_square_of_equation_2():
    params, pool, query = draw(layers=1)
    squares = scores.grads(compute.encode_one_layer(params, pool), query)
    u = params.w_kq[0, 0] @ query
    flows = [(d @ u) * params.w_pv[0, 0] + np.outer(params.w_pv[0, 0] @ d, u) for d in pool]
    np.testing.assert_allclose(squares, [(flow**2).sum() for flow in flows], rtol=1e-10)


def test_errors_are_those_of_demonstrations_that_a_rule_picks():
    recipe = Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1)
    spec = Spec(Task(2, (6,)), Architecture(1), recipe)
    config = SimpleNamespace(models=(("linear attention", spec),), pool=6, queries=3, shots=2)
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


def test_every_rule_competes_in_the_committed_result():
    root = Path(__file__).resolve().parents[2]
    dataset = results.load(root / "figures" / "grads" / "result.nc")
    assert dataset.rule.values.tolist() == list(rules.RULES), "run the laptop tier of grads again"


def test_one_demonstration_alone_is_fitted():
    rng = np.random.default_rng(0)
    pool, x_query, prior = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 4), 3, 3))
    case = Case(pool, x_query, jnp.ones(()), prior)
    for i, (*x, y) in enumerate(np.asarray(pool)):
        learnt = rules.learn(case, pool, jnp.eye(5)[i], 8)
        np.testing.assert_allclose(learnt @ jnp.asarray(x), y, rtol=1e-6)


def test_ranks_of_equal_scores_are_averaged():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, size=(2, 30)).astype(float)
    ours = jax.jit(compute.rank_correlation)(left, right)
    np.testing.assert_allclose(ours, spearmanr(left, right).statistic, rtol=1e-12)
