"""Matrices by path: in this library's trees and in Flax's, apart and joined, read and replaced."""

import functools

import jax
import numpy as np
import pytest
from flax import nnx

from draws import draw_stack, draw_weights
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import transformer
from lsa_lab.models.matrices import matrices, replace_matrices

L, D, H, K, M = 3, 6, 2, 4, 5
GATED = Config(L, 2 * H, H, K, D, M, 13, 32, rotary_width=2)
FACTORED = transformer.Config(D, L, H, K, width=8, norm=True, mlp_width=M)
RNG = np.random.default_rng(0)


def flax_layer():
    heads = {name: {"kernel": RNG.normal(size=(D, H, K))} for name in ("query", "key", "value")}
    heads["out"] = {"kernel": RNG.normal(size=(H, K, D)), "bias": np.zeros(D)}
    return {"attn": heads, "mlp": {"kernel": RNG.normal(size=(D, M)), "bias": np.zeros(M)}}


class Stack(nnx.Module):
    def __init__(self, rngs):
        attention = functools.partial(nnx.MultiHeadAttention, H, D, decode=False, rngs=rngs)
        self.layers = nnx.List([attention() for _ in range(L)])


LAYERS = [flax_layer() for _ in range(L)]
FLAX = {
    "named": {f"layers_{t}": layer for t, layer in enumerate(LAYERS)},
    "listed": {"params": {"layers": LAYERS}},
    "scanned": {"Scan_0": jax.tree.map(lambda *leaves: np.stack(leaves), *LAYERS)},
}
LIBRARY = {
    "transformer": draw_weights(RNG, transformer.init, FACTORED),
    "linear attention": draw_stack(RNG, L, H, D + 1),
    "decoder": draw_weights(RNG, weights.init, GATED),
}
TREES = FLAX | LIBRARY | {"nnx": nnx.state(Stack(nnx.Rngs(0)), nnx.Param)}
equal = np.testing.assert_array_equal


@pytest.mark.parametrize("tree", FLAX)
def test_flax_trees_hold_the_same_matrices_in_every_layout(tree):
    read = functools.partial(matrices, FLAX[tree])
    assert len(read()) == 5
    (mlp,), (query,), (out,), (queries,), (outs,) = (
        read(module, per_head=per_head).values()
        for module, per_head in (
            *(("mlp/kernel", False), ("attn/query/kernel", False), ("*/out/kernel", False)),
            *(("query/kernel", True), ("out/kernel", True)),
        )
    )
    for t, layer in enumerate(LAYERS):
        expected = {name: leaf["kernel"] for name, leaf in layer["attn"].items()}
        equal(mlp[t], layer["mlp"]["kernel"])
        equal(query[t], expected["query"].reshape(D, H * K))
        equal(out[t], expected["out"].reshape(H * K, D))
        equal(queries[t], expected["query"].swapaxes(0, 1))
        equal(outs[t], expected["out"])


def test_heads_of_this_library_are_joined_where_they_meet_the_stream():
    params, merged, decoder = LIBRARY.values()
    joined = matrices(params, "attention")
    for t in range(L):
        for name in ("w_q", "w_k", "w_v"):
            equal(joined[name][t], np.concatenate(list(getattr(params, name)[t])))
        equal(joined["w_o"][t], np.concatenate(list(params.w_o[t]), axis=1))
    equal(matrices(params, "w_o", per_head=True)["w_o"], params.w_o)
    for name in ("w_kq", "w_pv"):
        equal(matrices(merged)[name], getattr(merged, name))
    assert list(matrices(params)) == ["mlp_in", "mlp_out", "w_k", "w_o", "w_q", "w_v"]
    assert list(matrices(decoder, "mlp")) == ["mlp_in", "mlp_gate", "mlp_out"]
    assert matrices(decoder, "w_k")["w_k"].shape == (L, H * K, D)


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("tree", TREES)
def test_replaced_matrices_are_read_back_and_no_other_leaf_changes(tree, per_head):
    params = TREES[tree]
    modules = [name for name in matrices(params) if "mlp" not in name]
    old = matrices(params, modules, per_head=per_head)
    negated = replace_matrices(params, {name: -matrix for name, matrix in old.items()})
    assert jax.tree.structure(negated) == jax.tree.structure(params)
    new = matrices(negated, modules, per_head=per_head)
    jax.tree.map(lambda a, b: equal(a, -b), new, old)
    pairs = zip(jax.tree.leaves(negated), jax.tree.leaves(params), strict=True)
    changed = sum(bool((np.asarray(a) != np.asarray(b)).any()) for a, b in pairs)
    leaves_per_name = L if tree in ("named", "listed", "nnx") else 1
    assert changed == leaves_per_name * len(modules)


def test_runs_are_an_axis_of_vmap_and_layers_are_ordered_by_number():
    runs = jax.tree.map(lambda leaf: np.stack([leaf, -leaf]), LIBRARY["transformer"])
    stacks = jax.vmap(lambda params: matrices(params, "attention"))(runs)
    doubled = jax.vmap(replace_matrices)(runs, jax.tree.map(lambda leaf: 2 * leaf, stacks))
    equal(doubled.w_o, 2 * runs.w_o)
    equal(doubled.mlp_in, runs.mlp_in)
    with pytest.raises(ValueError, match="vmap"):
        matrices(runs, "w_q")
    tree = {f"layers_{t}": t * np.eye(2) for t in range(11)}
    equal(matrices(tree)["layers_*"][:, 0, 0], range(11))


@pytest.mark.parametrize(
    ("modules", "per_head"),
    [("mpl/kernel", False), ("layers_1/mlp/kernel", False), ("mlp/bias", False), ("mlp/*", True)],
)
def test_unknown_modules_single_layers_and_vectors_are_refused(modules, per_head):
    with pytest.raises(ValueError, match="layers_"):
        matrices(FLAX["named"], modules, per_head=per_head)
