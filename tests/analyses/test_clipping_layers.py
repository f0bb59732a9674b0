"""Single layers of a large model: rebuilt to the bits of the whole, from factors that are kept."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping import rebuilds
from lsa_lab.lm import halts, weights
from lsa_lab.lm.config import Config
from lsa_lab.models import leaves, linear_attention, transformer
from lsa_lab.models.blocks import OUTSIDE_LAYERS

SHARED = Config(3, 4, 2, 4, 12, 20, 13, 32, rotary_width=2)
# In NumPy, whose slices are not programs.
DECODER = jax.device_get(jax.jit(weights.init, static_argnums=1)(jax.random.key(0), SHARED))
SOFTMAX = transformer.Config(4, 3, 2, 3, width=8, norm=True, mlp_width=6)
TOY = jax.device_get(jax.jit(transformer.init, static_argnums=1)(jax.random.key(1), SOFTMAX))
LINEAR = linear_attention.Params(*np.random.default_rng(2).normal(size=(2, 3, 2, 4, 4)))
MODELS = {"decoder": DECODER, "single": jax.tree.map(lambda x: x.astype(np.float32), DECODER)}
MODELS |= {"toy": TOY, "linear": LINEAR}
EDITS = {
    "a layer": clipping.Edit(1, "attention", 0.5),
    "two layers": clipping.Edit((0, 2), "attention", 0.75),
    "dropped": clipping.Edit(2, "attention", clipping.DROP),
}


def cut(params, edit, split=clipping.by_singular_value):
    pieces = split(params, edit.modules)
    if not isinstance(pieces, clipping.Factors):
        pieces = jax.device_get(pieces)
    return pieces, clipping.keep_masks(params, pieces, edit)


def same(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("model", "edit"),
    [
        ("single", "two layers"),
        ("single", "dropped"),
        ("decoder", "a layer"),
        ("linear", "a layer"),
    ],
)
def test_a_rebuilt_layer_has_the_bits_of_the_whole(model, edit):
    params, edit = MODELS[model], EDITS[edit]
    pieces, keep = cut(params, edit)
    whole = jax.device_get(clipping.rebuild(params, pieces, keep))
    inside = whole.replace(**{n: None for n in vars(whole) if n in OUTSIDE_LAYERS})
    for layer in range(3):
        own = clipping.rebuild_layer(params, pieces, keep, layer)
        same(own, jax.tree.map(lambda leaf, layer=layer: leaf[layer], inside))
    same(rebuilds.rebuild_touched(params, pieces, keep), whole)
    # Control: a layer that another edit touches has other bits.
    other = clipping.rebuild_layer(params, *cut(params, clipping.Edit(1, "attention", 0.9)), 1)
    if edit.layers == (1,):
        assert not all(map(np.array_equal, jax.tree.leaves(other), jax.tree.leaves(own)))


def test_rivals_and_single_heads_are_rebuilt_in_one_layer_too():
    edit = clipping.Edit(1, ("w_q", "mlp"), 0.5)
    splits = clipping.by_magnitude, partial(clipping.by_random_direction, jax.random.key(3))
    for split in splits:
        pieces, keep = cut(DECODER, edit, split)
        whole = jax.device_get(clipping.rebuild(DECODER, pieces, keep))
        same(clipping.rebuild_layer(DECODER, pieces, keep, 1), halts.layer_of(whole, 1))
    edit = clipping.Edit(2, "attention", 0.5)
    pieces = jax.device_get(clipping.by_singular_value(DECODER, "attention", per_head=True))
    keep = clipping.keep_masks(DECODER, pieces, edit, heads=(0, 3), groups=(1,))
    whole = jax.device_get(clipping.rebuild(DECODER, pieces, keep))
    same(clipping.rebuild_layer(DECODER, pieces, keep, 2), halts.layer_of(whole, 2))


def test_only_what_an_edit_touches_is_computed():
    pieces, keep = cut(DECODER, clipping.Edit(1, "mlp", 0.5))
    inner = np.array([False, True, False])

    def poison(leaf):
        return np.where(inner.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, np.nan)

    poisoned = jax.tree.map(poison, pieces)
    own = clipping.rebuild_layer(DECODER, poisoned, keep, 1)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(own))
    same(clipping.rebuild_layer(DECODER, poisoned, keep, 0), halts.layer_of(DECODER, 0))


@pytest.mark.parametrize(
    ("params", "modules", "layer", "message"),
    [
        (DECODER, "mlp", 3, "layer 3: this model has 0 to 2"),
        (DECODER, "mlp", -1, "layer -1: this model has 0 to 2"),
        ([{"a": jnp.eye(3)}, {"a": jnp.eye(3)}], "*/a", 0, "layers stand on the first axis"),
        ({"w_q": TOY.w_q, "extra": jnp.ones(5)}, "w_q", 0, "extra has shape .* the params without"),
    ],
)
def test_params_without_layers_in_front_are_refused(params, modules, layer, message):
    names = leaves.resolve(params, modules)
    pieces = clipping.by_singular_value(params, names)
    keep = {name: np.ones(piece.places, bool) for name, piece in pieces.items()}
    with pytest.raises(ValueError, match=message):
        clipping.rebuild_layer(params, pieces, keep, layer)


def counted(monkeypatch):
    """The matrices decomposed since."""
    shapes, svd = [], np.linalg.svd

    def counting(matrix, **options):
        shapes.append((matrix.shape, matrix.dtype))
        return svd(matrix, **options)

    monkeypatch.setattr(np.linalg, "svd", counting)
    return shapes


@pytest.mark.parametrize("model", ["decoder", "single"])
def test_factors_are_made_once_and_only_where_they_are_needed(model, tmp_path, monkeypatch):
    params, edit = MODELS[model], clipping.Edit(1, "mlp", 0.5)
    shapes = counted(monkeypatch)
    factors, keep = cut(params, edit, partial(clipping.Factors, tmp_path))
    assert not shapes
    assert {name: piece.places for name, piece in factors.items()} == {
        "mlp_in": (3, 12),
        "mlp_gate": (3, 12),
        "mlp_out": (3, 12),
    }
    own = clipping.rebuild_layer(params, factors, keep, 1)
    assert [shape for shape, _ in shapes] == [(20, 12), (20, 12), (12, 20)]
    assert {dtype for _, dtype in shapes} == {np.dtype(np.float64)}
    again = clipping.Factors(tmp_path, params, "mlp")
    same(clipping.rebuild_layer(params, again, keep, 1), own)
    assert len(shapes) == 3
    expected = clipping.rebuild_layer(params, *cut(params, edit), 1)
    eps = np.finfo(own.mlp_in.dtype).eps
    for name in ("mlp_in", "mlp_gate", "mlp_out"):
        np.testing.assert_allclose(getattr(own, name), getattr(expected, name), atol=50 * eps)
    assert again["mlp_in"].at(1).left.dtype == params.mlp_in.dtype
    exact = np.asarray(clipping.singular_values(params.mlp_in))
    np.testing.assert_allclose(again["mlp_in"].values, exact, rtol=10 * eps)
    assert len(shapes) == 5  # the other layers of one module


def test_factors_cut_merged_weights_too(tmp_path):
    split = partial(clipping.Factors, tmp_path)
    ours, expected = (clipping.clip(LINEAR, 1, "w_kq", 0.5, **o) for o in ({"split": split}, {}))
    np.testing.assert_allclose(ours.w_kq, expected.w_kq, atol=1e-12)


def test_another_models_factors_are_never_taken_and_damaged_ones_refused(tmp_path):
    ours = clipping.Factors(tmp_path, DECODER, "w_k")["w_k"].at(0)
    doubled = DECODER.replace(w_k=2 * DECODER.w_k)
    theirs = clipping.Factors(tmp_path, doubled, "w_k")["w_k"].at(0)
    np.testing.assert_allclose(theirs.values, 2 * ours.values)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged"):
        clipping.Factors(tmp_path, DECODER, "w_k")["w_k"].at(0)
    broken = DECODER.replace(w_k=np.full_like(DECODER.w_k, np.nan))
    with pytest.raises(ValueError, match="NaN or infinity"):
        clipping.Factors(tmp_path, broken, "w_k")["w_k"].at(1)
