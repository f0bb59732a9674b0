"""`why_a_rate`: rules by hand, and risks after edits beside models cut one by one."""

from functools import partial

import jax
import numpy as np
import pytest

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.why_a_rate import rate_rules
from experiments.clipping.why_a_rate.compute import CUTS, batches
from experiments.clipping.why_a_rate.config import TIERS
from experiments.models.model import Model, init
from lsa_lab.analyses import clipping

CONFIG = TIERS["smoke"]
SPEC = spec_of(CONFIG)
RATES = (*CONFIG.rates, clipping.DROP)  # of four directions they keep 4, 2, 1 and 0


def test_each_rule_reads_its_own_rank_from_a_spectrum():
    """s = 3, 2, 2, 1: the largest fall after one; Σs²/s_1² = 2; 18²/114 = 2.8; 17/18 < 0.99."""
    assert rate_rules.predicted_ranks(np.array([3.0, 2, 2, 1]), 0.99).tolist() == [1, 2, 3, 4]
    assert rate_rules.predicted_ranks(np.array([3.0, 2, 2, 1]), 0.9).tolist() == [1, 2, 3, 3]
    assert rate_rules.predicted_ranks(np.array([[2.0, 2, 2, 1]]), 0.5).tolist() == [[3, 4, 4, 2]]


@pytest.fixture(scope="module")
def models():
    """Two untrained models, and prompts of their own."""
    params = jax.jit(jax.vmap(partial(init, SPEC)))(jax.random.split(jax.random.key(1), 2))
    return params, batches(jax.random.key(2), SPEC, 2, CONFIG)["matched"]


def cut(params, run, layer, names, rank):
    """The params of one run, some matrices of one layer at a rank: heads side by side."""
    own = {name: np.array(getattr(params, name)[run]) for name in names}
    for name, leaf in own.items():
        wide = (
            np.concatenate(leaf[layer], axis=int(name == "w_o")) if leaf.ndim == 4 else leaf[layer]
        )
        u, s, v = np.linalg.svd(wide)
        wide = u[:, :rank] * s[:rank] @ v[:rank]
        heads = np.split(wide, 2, axis=int(name == "w_o")) if leaf.ndim == 4 else wide
        leaf[layer] = heads
    return jax.tree.map(lambda leaf: leaf[run], params).replace(**own)


def named(edits):
    return [(layer, CUTS[module], RATES[rate]) for layer, module, rate in edits]


def test_gains_and_changes_are_those_of_matrices_cut_one_by_one(models):
    params, (batch, _, _) = models
    edits = [(1, 1, 1), (0, 3, 2)]  # w_v of the second layer to rank 2; a layer to rank 1
    matrices = ["w_v"], ["w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out"]
    risks = np.zeros((2, 2))
    errors = jax.jit(lambda params, batch: Model(SPEC, params).risk(batch))
    for run, ((layer, _, rate), names) in enumerate(zip(edits, matrices, strict=True)):
        own = jax.tree.map(lambda leaf, run=run: leaf[run], batch)
        risks[run, 0] = errors(jax.tree.map(lambda leaf, run=run: leaf[run], params), own)
        risks[run, 1] = errors(cut(params, run, layer, names, (4, 2, 1)[rate]), own)
    expected = 1 - risks[:, 1] / risks[:, 0]
    gained = trained_models.gains(SPEC, params, batch, (named(edits), named([(0, 0, 0)] * 2)))
    np.testing.assert_allclose(gained, [expected, [0, 0]], atol=2e-6)
    grid = dict(modules=(CUTS[1], CUTS[3]), rates=RATES)
    before, change = trained_models.relative_curve(SPEC, params, batch, **grid)
    np.testing.assert_allclose(before, risks[:, 0], rtol=1e-5)
    changes = [change[run][layer, run, rate] for run, (layer, _, rate) in enumerate(edits)]
    np.testing.assert_allclose(changes, -expected, atol=2e-6)
