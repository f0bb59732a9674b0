"""Clipping by path does to another model's tree what it does to ours; modules of a decoder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import clipping
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import leaves
from lsa_lab.prompts import Prompt

L, P, Q, B = 3, 4, 3, 6
OURS = {"mlp_in": np.random.default_rng(0).normal(size=(L, P, Q))}
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
    return Prompt(*(draws.normal(size=shape) for shape in shapes))


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


SHARED = Config(3, 4, 2, 2, 8, 10, 13, 32, rotary_width=2)
BIASED = Config(
    *(2, 4, 4, 2, 8, 10, 13, 32), gated=False, learned_positions=True, query_biases=True
)
init = jit_numpy(weights.init, static_argnums=1)
DECODER, OWN = init(jax.random.key(0), SHARED), init(jax.random.key(1), BIASED)
NAMES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_gate", "mlp_out")


def clipped(*edit, **options):
    return jax.device_get(clipping.clip(*edit, **options))


def changed(before, after):
    """The (name, layer) of every leaf in which two decoders differ."""
    return {
        (name, layer)
        for name, leaf in vars(before).items()
        if leaf is not None
        for layer in range(len(leaf))
        if (leaf[layer] != getattr(after, name)[layer]).any()
    }


def test_the_mlp_has_its_gate_where_there_is_one():
    assert leaves.resolve(DECODER, "mlp") == ("mlp_in", "mlp_gate", "mlp_out")
    assert leaves.resolve(OWN, "mlp") == ("mlp_in", "mlp_out")
    cut = clipped(DECODER, 1, "mlp", 0.75)
    assert changed(DECODER, cut) == {(name, 1) for name in NAMES if name.startswith("mlp")}
    gate = clipping.truncate(DECODER.mlp_gate[1], 0.75)
    np.testing.assert_allclose(cut.mlp_gate[1], gate, atol=1e-12)
    dropped = clipped(DECODER, 1, ("attention", "mlp"), clipping.DROP)
    assert not any(getattr(dropped, name)[1].any() for name in NAMES)


def test_keys_and_values_that_heads_share_are_stacked_as_they_are():
    whole = clipping.matrices(DECODER, "attention")
    assert {name: matrix.shape for name, matrix in whole.items()} == {
        "w_q": (3, 8, 8),
        "w_k": (3, 4, 8),
        "w_v": (3, 4, 8),
        "w_o": (3, 8, 8),
    }
    np.testing.assert_array_equal(whole["w_k"][2], np.concatenate(list(DECODER.w_k[2])))
    put_back = leaves.replace(DECODER, {name: -matrix for name, matrix in whole.items()})
    assert all((getattr(put_back, name) == -getattr(DECODER, name)).all() for name in whole)
    runs = jax.tree.map(lambda leaf: np.stack([leaf, -leaf]), DECODER)
    apart = clipping.matrices(runs, "w_k", per_head=True)["w_k"]
    np.testing.assert_array_equal(apart[1], -DECODER.w_k)


def test_heads_are_those_of_queries_and_groups_those_of_keys():
    cut = clipped(DECODER, 2, "attention", 0.5, heads=(3,), groups=(1,))
    for name, count, which in (("w_q", 4, 3), ("w_o", 4, 3), ("w_k", 2, 1), ("w_v", 2, 1)):
        before, after = getattr(DECODER, name), getattr(cut, name)
        edited = [(before[2, h] != after[2, h]).any() for h in range(count)]
        assert edited == [h == which for h in range(count)]
        assert np.linalg.matrix_rank(after[2, which]) == 1
        assert (before[:2] == after[:2]).all()
    alone = clipped(DECODER, 0, "w_v", 0.5, groups=(0, 1))
    assert changed(DECODER, alone) == {("w_v", 0)}
    # Where each head has its own keys and values, they are heads as any others.
    own = clipped(OWN, 0, "attention", 0.5, heads=(3,))
    assert (own.w_k[0, 3] != OWN.w_k[0, 3]).any()
    assert (own.w_k[0, :3] == OWN.w_k[0, :3]).all()


def test_a_foreign_tree_says_its_groups_by_a_letter():
    tree = {f"layers_{t}": {"q": DECODER.w_q[t], "k": DECODER.w_k[t]} for t in range(3)}
    modules = ("layers_*/q:HkD", "layers_*/k:GkD")
    cut = clipping.clip(tree, 1, modules, 0.5, heads=(2,), groups=(0,))
    expected = clipping.clip(DECODER, 1, ("w_q", "w_k"), 0.5, heads=(2,), groups=(0,))
    np.testing.assert_array_equal(cut["layers_1"]["q"], expected.w_q[1])
    np.testing.assert_array_equal(cut["layers_1"]["k"], expected.w_k[1])
    with pytest.raises(ValueError, match="has 2 heads and the module before it 4: cut one after"):
        clipping.clip(tree, 1, ("layers_*/q:HkD", "layers_*/k:HkD"), 0.5, heads=(1,))


@pytest.mark.parametrize("module", ["embedding", "unembedding", "positions", "b_q", "b_k"])
def test_what_no_layer_multiplies_by_is_no_module(module):
    params = OWN.replace(unembedding=OWN.embedding)
    with pytest.raises(ValueError, match=f"module '{module}' is no matrix of a layer: this model"):
        clipping.clip(params, 0, module, 0.5)
