"""Clipping by path does to another model's tree what it does to the same matrices of ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.analyses import clipping
from lsa_lab.models import leaves
from lsa_lab.prompts import Prompt

L, P, Q, B = 3, 4, 3, 6
OURS = {"mlp_in": jnp.asarray(np.random.default_rng(0).normal(size=(L, P, Q)))}
THEIRS = {f"layers_{t}": {"mlp": {"kernel": OURS["mlp_in"][t].T}} for t in range(L)}
SCANNED = {"params": {"blocks": {"mlp": {"kernel": OURS["mlp_in"].mT}}}}
PATH = "*/mlp/kernel"
RATES = clipping.every_rate(Q)


def our_risk(params, batch):
    matrices = params["mlp_in"]
    return ((batch.x[:, 0] @ matrices.sum(0).T) ** 2).sum(1) + jnp.abs(matrices[0, 0, 0] - 1)


def their_risk(params, batch):
    (kernels,) = leaves.matrices(params, PATH).values()
    return our_risk({"mlp_in": kernels.mT}, batch)


def prompts_of(seed):
    draws = np.random.default_rng(seed)
    shapes = (B, 1, Q), (B, 1), (B, Q), (B,)
    return Prompt(*(jnp.asarray(draws.normal(size=shape)) for shape in shapes))


def one_run(params):
    return jax.tree.map(lambda leaf: leaf[None], params)


@pytest.mark.parametrize("theirs", [THEIRS, SCANNED], ids=["spread", "scanned"])
def test_conditions_edits_curves_and_searches_are_those_of_the_same_matrices(theirs):
    expected = clipping.condition_numbers(OURS, "mlp")
    np.testing.assert_allclose(clipping.condition_numbers(theirs, PATH), expected, rtol=1e-10)
    (edited,) = leaves.matrices(clipping.clip(theirs, 1, PATH, 0.5), PATH).values()
    clipped = clipping.clip(OURS, 1, "mlp", 0.5)["mlp_in"]
    np.testing.assert_allclose(edited.mT, clipped, atol=1e-12)
    np.testing.assert_array_equal(edited[0], OURS["mlp_in"][0].T)
    batch, more = prompts_of(0), {"rates": RATES}
    curves = [
        clipping.curve(risk, one_run(params), batch, modules=[module], **more).change.mean
        for risk, params, module in ((our_risk, OURS, "mlp"), (their_risk, theirs, PATH))
    ]
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-12)
    ours, found = (
        clipping.search(risk, params, batch, prompts_of(1), modules=module, **more)
        for risk, params, module in ((our_risk, OURS, "mlp"), (their_risk, theirs, PATH))
    )
    assert [edit.layers for edit in found.edits] == [edit.layers for edit in ours.edits]
    assert {edit.modules for edit, _ in found.tried} == {(PATH,)}
    np.testing.assert_allclose(found.test_gain, ours.test_gain, atol=1e-12)


def test_rivals_and_single_heads_are_cut_by_path_too():
    kernels = [jnp.asarray(np.random.default_rng(t).normal(size=(5, 2, 3))) for t in range(2)]
    tree = {"layers": [{"query": {"kernel": kernel}} for kernel in kernels]}
    edited = clipping.clip(tree, 1, "query/kernel", 0.5, heads=[0])
    first, second = (layer["query"]["kernel"] for layer in edited["layers"])
    np.testing.assert_array_equal(first, kernels[0])
    np.testing.assert_array_equal(second[:, 1], kernels[1][:, 1])
    np.testing.assert_allclose(second[:, 0], clipping.truncate(kernels[1][:, 0], 0.5), atol=1e-12)
    pruned = clipping.clip(tree, 0, "query/kernel", 0.5, split=clipping.by_magnitude)
    kept = (pruned["layers"][0]["query"]["kernel"] != 0).sum()
    assert kept == clipping.free_numbers(5, 6, clipping.kept_rank(5, 0.5))
