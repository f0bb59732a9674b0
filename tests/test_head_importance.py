"""What the experiments on heads share: importance of runs, and other ways to write their heads."""

import jax
import numpy as np
import pytest

from experiments.heads import importance
from experiments.heads.head_importance import patterns as head_patterns
from experiments.models import sparse_models
from experiments.models.specs import Family
from lsa_lab.analyses import heads
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

FAMILY = Family(((2, 1), (2, 2)), d=2, scratch=1)
RUNS, PROMPTS = 2, 8


def drawn(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def weights():
    both = 0.3 * drawn(2, RUNS, FAMILY.depth, FAMILY.heads, 4, 4)
    return Params(w_kq=both[0], w_pv=both[1])


def prompts():
    numbers = drawn(PROMPTS, 6, 3)
    return Prompt(numbers[:, :5, :2], numbers[:, :5, 2], numbers[:, 5, :2], numbers[:, 5, 2])


def predicted(params):  # [R, B]
    everyone = jax.vmap(sparse_models.predict, (None, 0, None, None))
    run = jax.jit(everyone, static_argnums=0)
    return np.asarray(run(FAMILY, params, prompts(), np.ones((FAMILY.depth, FAMILY.heads))))


@pytest.mark.parametrize("architecture", [0, 1])
def test_importances_are_those_of_one_run_after_the_other(architecture):
    gates, params = sparse_models.masks(FAMILY)[architecture], weights()
    found = importance.importances(FAMILY, params, prompts(), gates)
    one = jax.tree.map(lambda leaf: leaf[1], params)
    loss = lambda mask: sparse_models.risk(FAMILY, one, prompts(), gates * mask)  # noqa: E731
    expected = heads.importance(loss, FAMILY.depth, FAMILY.heads)
    np.testing.assert_allclose(found[1], expected, atol=1e-12)
    assert not found[:, gates == 0].any(), "a head that is not there has no importance"


def test_other_representatives_are_the_same_model():
    params = weights()
    written = head_patterns.represented(FAMILY, params, seed=0)
    for others in written.values():
        np.testing.assert_allclose(predicted(others), predicted(params), atol=1e-10)
        assert np.abs(others.w_pv - params.w_pv).max() > 0.1, "its heads are other ones"
    halves = written["orthogonal"].replace(w_pv=written["turned"].w_pv)
    assert np.abs(predicted(halves) - predicted(params)).max() > 0.01, "control: half of each"
