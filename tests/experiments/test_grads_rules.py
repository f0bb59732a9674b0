"""The rules that `grads` selects by, and the result that is judged."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.grads import compute, rules
from experiments.flow.grads.cases import Case, ineffective, prior_cases
from experiments.flow.grads.config import Config
from lsa_lab.judging.statistics import spearman
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_competes_in_the_committed_result():
    dataset = results.load(ROOT / "figures" / "grads" / "result.nc")
    assert dataset.rule.values.tolist() == list(rules.RULES), "run the laptop tier of grads again"


def test_every_score_ranks_the_pool():
    rng = np.random.default_rng(0)
    pool, x_query, prior = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 4), 3, 3))
    static = rules.static_scores(Case(pool, x_query, jnp.ones(()), prior), jax.random.key(0))
    assert static.keys() == set(rules.RULES[: len(static)])
    assert {values.shape for values in static.values()} == {(5,)}


def test_ranks_of_ties_are_their_mean():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, (2, 30)).astype(float)
    of_jax = compute.rank_correlation(jnp.asarray(left), jnp.asarray(right))
    np.testing.assert_allclose(of_jax, spearman(left, right), rtol=1e-12)
    assert compute.rank_correlation(jnp.ones(5), jnp.arange(5.0)) == 0


def test_one_demonstration_alone_is_fitted():
    rng = np.random.default_rng(0)
    pool, x_query, prior = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 4), 3, 3))
    case = Case(pool, x_query, jnp.ones(()), prior)
    learnt = [
        rules.learn(case, pool, jnp.eye(5)[i], 8) @ x_query - prior @ x_query for i in range(5)
    ]
    np.testing.assert_allclose(compute.answer_alone(case), learnt, rtol=1e-6)


def test_irrelevant_or_learned_demonstrations_are_as_frequent_as_stated():
    config = Config(density=0.3, known=5, query_density=0.4, d=7, queries=400)
    case = prior_cases(np.random.default_rng(0), config, duplicates=False)
    x = case.pool[..., :-1]
    irrelevant = np.einsum("qmd,qd->qm", x, case.x_query) == 0
    learned = ~((x != 0) & (case.prior == 0)[:, None]).any(-1)
    share = (irrelevant | learned).mean(1)
    assert abs(share.mean() - ineffective(config)) < 4 * share.std() / len(share) ** 0.5
