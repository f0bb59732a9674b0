"""Matrices by path: in this library's trees and in Flax's, apart and joined, read and replaced."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.matrices import matrices, replace_matrices

L, D, H, K, M = 3, 6, 2, 4, 5
GATED = Config(L, 2 * H, H, K, D, M, 13, 32, rotary_width=2)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def flax_layer(t):
    names = ("query", "key", "value")
    heads = {name: {"kernel": numbers(D, H, K, seed=9 * t + i)} for i, name in enumerate(names)}
    heads["out"] = {"kernel": numbers(H, K, D, seed=9 * t + 3), "bias": np.zeros(D)}
    mlp = {"kernel": numbers(D, M, seed=9 * t + 4), "bias": np.zeros(M)}
    return {"attn": heads, "mlp": mlp}


class Stack(nnx.Module):
    def __init__(self, rngs):
        attention = functools.partial(nnx.MultiHeadAttention, H, D, decode=False, rngs=rngs)
        self.layers = nnx.List([attention() for _ in range(L)])


LAYERS = [flax_layer(t) for t in range(L)]
FLAX = {
    "named": {f"layers_{t}": layer for t, layer in enumerate(LAYERS)},
    "listed": {"params": {"layers": LAYERS}},
    "scanned": {"Scan_0": jax.tree.map(lambda *leaves: np.stack(leaves), *LAYERS)},
}
LIBRARY = {
    "transformer": transformer.init(
        jax.random.key(0), transformer.Config(D, L, H, K, width=8, norm=True, mlp_width=M)
    ),
    "linear attention": linear_attention.init(jax.random.key(1), L, H, 3),
    "decoder": weights.init(jax.random.key(2), GATED),
}
TREES = FLAX | LIBRARY | {"nnx": nnx.state(Stack(nnx.Rngs(0)), nnx.Param)}


@pytest.mark.parametrize("tree", FLAX)
def test_flax_trees_hold_the_same_matrices_in_every_layout(tree):
    (mlp,) = matrices(FLAX[tree], "mlp/kernel").values()
    (query,) = matrices(FLAX[tree], "attn/query/kernel").values()
    (out,) = matrices(FLAX[tree], "*/out/kernel").values()
    (queries,) = matrices(FLAX[tree], "query/kernel", per_head=True).values()
    (outs,) = matrices(FLAX[tree], "out/kernel", per_head=True).values()
    assert len(matrices(FLAX[tree])) == 5
    for t, layer in enumerate(LAYERS):
        expected = {name: leaf["kernel"] for name, leaf in layer["attn"].items()}
        np.testing.assert_array_equal(mlp[t], layer["mlp"]["kernel"])
        np.testing.assert_array_equal(query[t], expected["query"].reshape(D, H * K))
        np.testing.assert_array_equal(out[t], expected["out"].reshape(H * K, D))
        np.testing.assert_array_equal(queries[t], expected["query"].swapaxes(0, 1))
        np.testing.assert_array_equal(outs[t], expected["out"])


def test_heads_of_this_library_are_joined_where_they_meet_the_stream():
    params = LIBRARY["transformer"]
    joined = matrices(params, "attention")
    for t in range(L):
        np.testing.assert_array_equal(joined["w_q"][t], np.concatenate(list(params.w_q[t])))
        np.testing.assert_array_equal(joined["w_o"][t], np.concatenate(list(params.w_o[t]), axis=1))
    np.testing.assert_array_equal(matrices(params, "w_o", per_head=True)["w_o"], params.w_o)
    merged = LIBRARY["linear attention"]
    np.testing.assert_array_equal(matrices(merged)["w_kq"], merged.w_kq)
    assert list(matrices(params)) == ["mlp_in", "mlp_out", "w_k", "w_o", "w_q", "w_v"]
    assert list(matrices(LIBRARY["decoder"], "mlp")) == ["mlp_in", "mlp_gate", "mlp_out"]
    assert matrices(LIBRARY["decoder"], "w_k")["w_k"].shape == (L, H * K, D)


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("tree", TREES)
def test_replaced_matrices_are_read_back_and_no_other_leaf_changes(tree, per_head):
    params = TREES[tree]
    modules = [name for name in matrices(params) if "mlp" not in name]
    old = matrices(params, modules, per_head=per_head)
    negated = replace_matrices(params, {name: -matrix for name, matrix in old.items()})
    assert jax.tree.structure(negated) == jax.tree.structure(params)
    new = matrices(negated, modules, per_head=per_head)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, -b), new, old)
    pairs = zip(jax.tree.leaves(negated), jax.tree.leaves(params), strict=True)
    changed = sum(bool((np.asarray(a) != np.asarray(b)).any()) for a, b in pairs)
    leaves_per_name = L if tree in ("named", "listed", "nnx") else 1
    assert changed == leaves_per_name * len(modules)


def test_runs_are_an_axis_of_vmap():
    runs = jax.tree.map(lambda leaf: jnp.stack([leaf, -leaf]), LIBRARY["transformer"])
    both = jax.vmap(lambda params: matrices(params, "attention"))(runs)
    doubled = jax.vmap(replace_matrices)(runs, jax.tree.map(lambda leaf: 2 * leaf, both))
    np.testing.assert_array_equal(doubled.w_o, 2 * runs.w_o)
    np.testing.assert_array_equal(doubled.mlp_in, runs.mlp_in)
    with pytest.raises(ValueError, match="vmap"):
        matrices(runs, "w_q")


def test_layers_are_ordered_by_number():
    tree = {f"layers_{t}": t * jnp.eye(2) for t in range(11)}
    assert matrices(tree)["layers_*"][:, 0, 0].tolist() == list(range(11))


@pytest.mark.parametrize(
    ("modules", "per_head"),
    [("mpl/kernel", False), ("layers_1/mlp/kernel", False), ("mlp/bias", False), ("mlp/*", True)],
)
def test_unknown_modules_single_layers_and_vectors_are_refused(modules, per_head):
    with pytest.raises(ValueError, match="layers_"):
        matrices(FLAX["named"], modules, per_head=per_head)
