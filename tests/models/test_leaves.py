"""Matrices by path: which leaves a pattern means, which axes they have, and what is refused."""

import functools

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lsa_lab.models import leaves, linear_attention, transformer

L, D, H, K, M = 3, 6, 2, 4, 5


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def layer(t):
    heads = {name: {"kernel": numbers(D, H, K, seed=9 * t + i)} for i, name in enumerate("qkv")}
    heads = dict(zip(("query", "key", "value"), heads.values(), strict=True))
    heads["out"] = {"kernel": numbers(H, K, D, seed=9 * t + 3), "bias": np.zeros(D)}
    mlp = {"kernel": numbers(D, M, seed=9 * t + 4), "bias": np.zeros(M)}
    return {"attn": heads, "mlp": mlp}


BY_NAME = {f"layers_{t}": layer(t) for t in range(L)} | {"embed": {"kernel": numbers(2, D)}}
BY_LIST = {"params": {"layers": [layer(t) for t in range(L)]}}
SCANNED = {"Scan_0": jax.tree.map(lambda *many: np.stack(many), *(layer(t) for t in range(L)))}
TREES = {"named": BY_NAME, "listed": BY_LIST, "scanned": SCANNED}


class Plain(nnx.Module):
    def __init__(self, rngs):
        attention = functools.partial(nnx.MultiHeadAttention, H, D, decode=False, rngs=rngs)
        self.layers = nnx.List([attention() for _ in range(L)])


@pytest.mark.parametrize("tree", TREES)
def test_a_pattern_means_the_same_matrices_wherever_the_layers_stand(tree):
    (kernels,) = leaves.matrices(TREES[tree], "*/mlp/kernel").values()
    expected = np.stack([layer(t)["mlp"]["kernel"] for t in range(L)])
    np.testing.assert_array_equal(kernels, expected)
    (queries,) = leaves.matrices(TREES[tree], "attn/query/kernel").values()
    (outputs,) = leaves.matrices(TREES[tree], "attn/out/kernel").values()
    for t in range(L):
        query, out = (layer(t)["attn"][name]["kernel"] for name in ("query", "out"))
        np.testing.assert_array_equal(queries[t], np.reshape(query, (D, H * K)))
        np.testing.assert_array_equal(outputs[t], np.reshape(out, (H * K, D)))
    for name, kernel in (("query", query.swapaxes(0, 1)), ("out", out)):
        (apart,) = leaves.matrices(TREES[tree], f"attn/{name}/kernel", per_head=True).values()
        np.testing.assert_array_equal(apart[-1], kernel)


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("tree", TREES)
def test_a_layer_has_its_own_of_the_matrices(tree, per_head):
    (all_layers,) = leaves.matrices(TREES[tree], "attn/out/kernel", per_head=per_head).values()
    for t in range(L):
        own = leaves.matrix(TREES[tree], "attn/out/kernel", t, per_head=per_head)
        np.testing.assert_array_equal(own, all_layers[t])


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("tree", TREES)
def test_what_is_put_back_is_what_was_taken(tree, per_head):
    whole = leaves.matrices(TREES[tree], "attn/*/kernel", per_head=per_head)
    assert len(whole) == 4
    negated = leaves.replace(TREES[tree], {name: -matrix for name, matrix in whole.items()})
    for path, leaf in leaves.by_path(TREES[tree]).items():
        sign = -1 if "attn" in path and path.endswith("kernel") else 1
        np.testing.assert_array_equal(leaves.by_path(negated)[path], sign * leaf)


def test_a_leaf_called_value_keeps_its_name_where_it_is_in_no_box():
    class Bias(flax.struct.PyTreeNode):
        value: jax.Array

    assert list(leaves.by_path(Bias(jnp.ones(2)))) == ["value"]
    assert list(leaves.by_path({"bias": Bias(jnp.ones(2))})) == ["bias"]


def test_heads_may_be_folded_into_one_axis():
    tree = {
        f"h_{t}": {"c_proj": layer(t)["attn"]["out"]["kernel"].reshape(H * K, D)} for t in (0, 1)
    }
    (apart,) = leaves.matrices(tree, f"c_proj:({H}k)D", per_head=True).values()
    np.testing.assert_array_equal(apart[1], layer(1)["attn"]["out"]["kernel"])
    turned = jax.tree.map(np.transpose, tree)
    (apart,) = leaves.matrices(turned, f"c_proj:D({H}k)", per_head=True).values()
    np.testing.assert_array_equal(apart[1, 1], layer(1)["attn"]["out"]["kernel"][1].T)
    stacked = {"c_proj": np.stack([turned["h_0"]["c_proj"], turned["h_1"]["c_proj"]])}
    (again,) = leaves.matrices(stacked, f"c_proj:LD({H}k)", per_head=True).values()
    np.testing.assert_array_equal(again, apart)
    (name,) = leaves.resolve(stacked, f"c_proj:LD({H}k)")
    put_back = leaves.replace(stacked, {name: again})
    np.testing.assert_array_equal(put_back["c_proj"], stacked["c_proj"])


def test_the_eight_names_are_patterns_with_axes():
    for params in (
        transformer.init(jax.random.key(0), transformer.Config(4, L, H, K, mlp_width=M)),
        linear_attention.init(jax.random.key(1), L, H, 3),
    ):
        for name in leaves.resolve(params, leaves.resolve(params, "attention")):
            axes = "LHDk" if name == "w_o" else "LHpq" if "w_kq" in name or "pv" in name else "LHkD"
            for per_head in (False, True):
                (expected,) = leaves.matrices(params, name, per_head=per_head).values()
                (same,) = leaves.matrices(params, f"{name}:{axes}", per_head=per_head).values()
                np.testing.assert_array_equal(same, expected)


def test_a_name_holds_for_many_models_at_once():
    names = leaves.resolve(BY_NAME, ("out/kernel", "mlp/kernel"))
    assert names[-1] == "layers_{0,1,2}/mlp/kernel:pq"
    assert leaves.resolve(BY_NAME, names) == names
    runs = jax.tree.map(lambda leaf: np.stack([leaf, -leaf]), BY_NAME)
    for name, one in leaves.matrices(BY_NAME, names).items():
        (many,) = leaves.matrices(runs, name).values()
        np.testing.assert_array_equal(many, np.stack([one, -one]))
    put_back = leaves.replace(runs, leaves.matrices(runs, names))
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), put_back, runs))


def test_layers_are_in_the_order_of_their_numbers_and_may_be_chosen():
    tree = {f"layers_{t}": t * jnp.eye(2) for t in range(11)}
    (whole,) = leaves.matrices(tree, "layers_*").values()
    assert whole[:, 0, 0].tolist() == list(range(11))
    (whole,) = leaves.matrices(tree, "layers_[13]").values()
    assert whole[:, 0, 0].tolist() == [1, 3]
    (whole,) = leaves.matrices(tree, "layers_10:pq").values()
    assert whole[:, 0, 0].tolist() == [10]
    two = {"teacher_1": tree, "student_1": jax.tree.map(jnp.negative, tree)}
    assert len(leaves.resolve(two, "layers_*")) == 2
    (whole,) = leaves.matrices(two, "student_*/layers_*").values()
    assert whole[:, 0, 0].tolist() == [-t for t in range(11)]


def test_nnx_states_dataclasses_and_variables_are_trees_too():
    @flax.struct.dataclass
    class Weights:
        value: jax.Array  # a field's name, no box
        out: jax.Array

    tree = [Weights(numbers(D, D), numbers(D, M)) for _ in range(L)]
    assert leaves.resolve(tree, "*/value") == ("{0,1,2}/value:pq",)
    state = nnx.state(Plain(nnx.Rngs(0)), nnx.Param)
    assert leaves.resolve(state, "value/kernel") == ("layers/{0,1,2}/value/kernel:DHk",)
    doubled = {n: 2 * m for n, m in leaves.matrices(state, "out/kernel").items()}
    put_back = leaves.replace(state, doubled)
    assert jax.tree.structure(put_back) == jax.tree.structure(state)
    kernels = [s.layers[1].out.kernel.get_value() for s in (put_back, state)]
    np.testing.assert_allclose(kernels[0], 2 * kernels[1])
    module = nn.MultiHeadDotProductAttention(H)
    variables = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((2, D), jnp.float32))
    assert leaves.resolve(variables, "query/kernel:DHk") == ("params/query/kernel:DHk",)


@pytest.mark.parametrize(
    ("tree", "modules", "message"),
    [
        (BY_NAME, "mlp", r"module 'mlp': this model has layers_\*/mlp/kernel, "),
        (BY_NAME, "layers_*/mpl/kernel", r"this model has layers_\*/mlp/kernel, .*layers_\*/attn"),
        (BY_NAME, (), "no module given: this model has layers"),
        ({"a": jnp.ones(3)}, "a/b", "this model has no matrices"),
        (BY_NAME, "embed/kernel", r"matches embed/kernel of shape \(2, 6\), .* say its axes"),
        (BY_NAME, "mlp/*", r"matches layers_\{0,1,2\}/mlp/bias of shape \(5,\)"),
        (SCANNED, "mlp/bias", r"matches Scan_0/mlp/bias .*'mlp/bias:pq'"),
        ({"a": jnp.ones((2, 2, 2)), "b": jnp.ones((3, 2, 2))}, "?", r"\(a:Lpq 2, b:Lpq 3\)"),
        ({"out": {"kernel": jnp.ones((2, 2, 2))}}, "out/kernel", r"out/kernel:pq.* DHk"),
        (BY_NAME, ("layers_0/mlp/kernel:pq", "mlp/kernel"), "layers_0/mlp/kernel belongs to two"),
        (BY_NAME, "mlp/kernel:pqr", "'pqr' are no axes of a leaf of shape"),
        (BY_NAME, "mlp/kernel:pk", "'pk' are no axes"),
        (BY_NAME, "mlp/kernel:Lpq", "'Lpq' are no axes"),
        (BY_NAME, "mlp/kernel:(4k)D", "4 heads do not divide the axis of 6"),
        (BY_NAME, "mlp/kernel:(0k)D", "0 heads do not divide the axis of 6"),
        ({"l_0": jnp.ones((2, 3)), "l_1": jnp.ones((3, 2))}, "l_*", r"\(2, 3\) and \(3, 2\)"),
        (
            {"w_q": jnp.ones((2, 3, 5, 7)), "w_k": jnp.ones((2, 3, 7, 5))},
            "w_q",
            r"w_q has D = 7 and w_k 5, .*'w_q:LDHk'",
        ),
        ([{"w_q": jnp.ones((4, 4))}] * 2, "w_q", "in 0/w_q and 1/w_q: if they are layers.*w_q:pq"),
        ([{"w_q": jnp.ones((3, 4, 4))}] * 2, "w_q", "say the axes of each, as in 'w_q:HkD'"),
        ({"w_q": jnp.ones((2, 2, 3, 4)), "b_gate": jnp.ones((2, 2, 3))}, "b_gate", "no matrix of"),
        ({"w_q": jnp.ones((2, 2))}, "w_q", r"in this library it is \[L, H, k, D\].*'w_q:pq'"),
    ],
)
def test_what_is_no_matrix_of_each_layer_is_refused_in_one_sentence(tree, modules, message):
    with pytest.raises(ValueError, match=message):
        leaves.matrices(tree, modules)
    with pytest.raises(ValueError, match="only the matrices of attention have heads"):
        leaves.matrices(BY_NAME, "mlp/kernel", per_head=True)
