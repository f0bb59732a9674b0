"""The rules that `grads` selects by, and the result that is judged."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from experiments.flow.grads import rules
from experiments.flow.grads.cases import Case
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_competes_in_the_committed_result():
    dataset = results.load(ROOT / "figures" / "grads" / "result.nc")
    assert dataset.rule.values.tolist() == list(rules.RULES), "run the laptop tier of grads again"


def test_one_demonstration_alone_is_fitted():
    rng = np.random.default_rng(0)
    pool, x_query, prior = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 4), 3, 3))
    case = Case(pool, x_query, jnp.ones(()), prior)
    for i, (*x, y) in enumerate(np.asarray(pool)):
        learnt = rules.learn(case, pool, jnp.eye(5)[i], 8)
        np.testing.assert_allclose(learnt @ jnp.asarray(x), y, rtol=1e-6)
