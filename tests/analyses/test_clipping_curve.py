"""The curve is what editing, cutting and predicting one by one would give, compiled once."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import clipping
from lsa_lab.models import linear_attention, transformer
from lsa_lab.prompts import Prompt

R, N, D, B = 2, 6, 3, 5
CONFIG = transformer.Config(D + 1, 3, 2, 2, width=5, mlp_width=4)
RATES = (0.0, 0.5, 0.9, 0.95, clipping.DROP)
NAMES = ("w_q", ("w_v", "mlp_out"), "mlp")
traced = []


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((B, N, D), (B, N), (B, D), (B,))]
    return Prompt(*arrays)


@functools.cache
def models():
    draw = jit_numpy(jax.vmap(lambda key: transformer.init(key, CONFIG)))
    return draw(jax.random.split(jax.random.key(0), R))


def risk(params, many):
    traced.append(1)
    read = jax.vmap(lambda p: transformer.predict(params, prompts.tokens(p), CONFIG))
    return (read(many) - many.y_query) ** 2


@functools.cache
def grid():
    return clipping.curve(risk, models(), batch(), modules=NAMES, rates=RATES, shots=(2, N))


def one_by_one(r, shots, layer, names, rate, split=clipping.by_singular_value):
    """Errors of one edited and of the unclipped model on prompts cut by hand."""
    params = jax.tree.map(lambda leaf: leaf[r], models())
    cut = batch().replace(x=batch().x[:, :shots], y=batch().y[:, :shots])
    edited = clipping.clip(params, layer, names, rate, split=split)
    return np.asarray(compiled(edited, cut)), np.asarray(compiled(params, cut))


compiled = jax.jit(risk)


@pytest.mark.parametrize(("r", "s", "k", "m"), [(0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 2, 2)])
def test_every_place_of_the_curve_is_one_edit(r, s, k, m):
    for q in (1, 2, 4):
        edited, base = one_by_one(r, (2, N)[s], k, NAMES[m], RATES[q])
        for centre in ("mean", "median"):
            unclipped, clipped, change = (
                getattr(part, centre)[r, s]
                for part in (grid().unclipped, grid().clipped, grid().change)
            )
            centred = getattr(np, centre)
            np.testing.assert_allclose(unclipped, centred(base), atol=1e-10)
            np.testing.assert_allclose(clipped[k, m, q], centred(edited), atol=1e-10)
            np.testing.assert_allclose(change[k, m, q], centred(edited - base), atol=1e-10)


def test_what_cuts_nothing_changes_nothing_and_equal_ranks_are_equal():
    change = grid().change.mean
    assert not change[..., 0].any()
    assert (change[..., 1:] != 0).all()
    assert (change[..., 2] == change[..., 3])[:, :, :, 1:].all()  # of 5 and 4: rank 1 both
    nothing = clipping.curve(risk, models(), batch(), modules=["w_q"], rates=[0.0])
    assert nothing.unclipped.mean.shape == (R, 1)
    assert not nothing.change.mean.any()
    assert (nothing.clipped.mean[:, :, 0, 0, 0] == nothing.unclipped.mean).all()


def test_new_weights_and_prompts_are_not_traced_again():
    grid.__wrapped__()  # traced here: conftest may have cleared what other tests compiled
    before = len(traced)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, models())
    again = clipping.curve(risk, doubled, batch(), modules=NAMES, rates=RATES, shots=(2, N))
    assert len(traced) == before
    assert (again.clipped.mean != grid().clipped.mean).all()


def test_a_rival_and_single_heads_take_the_place_of_clipping():
    found = clipping.curve(
        risk, models(), batch(), modules=["w_o"], rates=[0.5], split=clipping.by_magnitude
    )
    edited, base = one_by_one(1, N, 2, "w_o", 0.5, clipping.by_magnitude)
    np.testing.assert_allclose(found.change.mean[1, 0, 2, 0, 0], (edited - base).mean(), atol=1e-10)
    heads = clipping.curve(
        risk, models(), batch(), modules=["w_q"], layers=[(0, 1)], rates=[0.5], heads=[1]
    )
    params = jax.tree.map(lambda leaf: leaf[0], models())
    edited = compiled(clipping.clip(params, (0, 1), "w_q", 0.5, heads=[1]), batch())
    np.testing.assert_allclose(heads.clipped.mean[0, 0, 0, 0, 0], edited.mean(), atol=1e-10)


def test_edits_of_late_layers_go_on_from_the_stream_before_them(monkeypatch):
    """The same bits as where all edits are one loop, and less is computed in the loop."""
    monkeypatch.setattr(clipping.cells, "_COMPILED", 0)
    found = clipping.curve(risk, models(), batch(), modules=NAMES, rates=RATES, shots=(2, N))
    jax.tree.map(np.testing.assert_array_equal, found, grid())
    masks = {"w_q": np.ones((4, 3, 4), bool)}
    for edit, layer in enumerate((2, 0, 1, 1)):
        masks["w_q"][edit, layer, 2:] = False
    groups = {
        worth: [(first, rows.tolist()) for first, rows in clipping.cells._groups(masks, worth)]
        for worth in (0, 1, 2)
    }
    assert groups[0] == [(0, [1]), (1, [2, 3]), (2, [0])]
    assert groups[1] == [(0, [1]), (1, [0, 2, 3])]
    assert groups[2] == [(0, [0, 1, 2, 3])]


def test_what_does_not_fit_is_refused():
    one = jax.tree.map(lambda leaf: leaf[0], models())
    with pytest.raises(ValueError, match=r"sizes, \[.*\]: the first .*lambda leaf: leaf\[None\]"):
        clipping.curve(risk, one, batch(), modules=["w_q"])
    square = linear_attention.Params(*np.ones((2, 2, 2, D + 1, D + 1)))  # L in front of every leaf
    with pytest.raises(ValueError, match=r"'w_pv' has shape .* In a curve .* leaf: leaf\[None\]"):
        clipping.curve(risk, square, batch(), modules=["w_pv"])
    with pytest.raises(ValueError, match="prompts have 6 demonstrations"):
        clipping.curve(risk, models(), batch(), modules=["w_q"], shots=[7])
    with pytest.raises(ValueError, match="module 'w_kq'"):
        clipping.curve(risk, models(), batch(), modules=["w_kq"])
    with pytest.raises(ValueError, match="rate is 1"):  # none of the demonstrations is no mistake
        clipping.curve(risk, models(), batch(), modules=["w_q"], shots=[0], rates=[1.0])
    broken = models().replace(w_q=np.full_like(models().w_q, np.nan))
    with pytest.raises(ValueError, match="NaN or infinity"):
        clipping.curve(risk, broken, batch(), modules=["w_q"])
    uneven = models().replace(read_out=models().read_out[:1])
    with pytest.raises(ValueError, match=r"sizes, \[1, 2\]"):
        clipping.curve(risk, uneven, batch(), modules=["w_q"])


def first_two(many, n):
    return {"prompts": clipping.curves.first_shots(many["prompts"], n), "shots": many["shots"]}


def risk_of_other(params, many):
    return risk(params, many["prompts"])


def test_another_batch_is_shortened_by_its_own_function():
    other = {"prompts": batch(), "shots": jnp.arange(B)}
    options = {"modules": NAMES, "rates": RATES}
    found = clipping.curve(
        risk_of_other, models(), other, shots=(2, N), shorten=first_two, **options
    )
    for part in ("unclipped", "clipped", "change"):
        mine, theirs = getattr(found, part), getattr(grid(), part)
        # Two programs: equal to the bit by jax 0.10, to rounding by 0.12.
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(mine.median, theirs.median, rtol=1e-14, atol=1e-14)
    whole = clipping.curve(risk_of_other, models(), other, **options)
    np.testing.assert_allclose(whole.clipped.mean[:, 0], grid().clipped.mean[:, 1], rtol=1e-14)
    assert (whole.clipped.mean[:, 0] != grid().clipped.mean[:, 0]).any()  # control: fewer shots
    with pytest.raises(TypeError, match=r"a batch that is dict and no Prompt: give shorten"):
        clipping.curve(risk_of_other, models(), other, shots=(2,), **options)
