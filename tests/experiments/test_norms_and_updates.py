"""Sizes of updates with norms and without, shrunk writes, and ratios of pairs, by hand."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.descent.norms_and_updates import claims, compute
from experiments.descent.norms_and_updates.config import TIERS, Config, normed
from experiments.models.model import Model, init
from experiments.models.tasks import distribution, draw

PLAIN = TIERS["smoke"].plain
READ = ("w_q", "w_k", "w_v")  # what reads the stream
SPECS = {"without": PLAIN, "with": normed(PLAIN)}


def drawn(norm):
    """A model with random weights, scales and offsets, and a prompt."""
    spec, rng = SPECS[norm], np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), init(spec, jax.random.key(0)))
    if norm == "with":
        shape = params.attention_norm_scale.shape
        params = params.replace(
            attention_norm_scale=rng.normal(size=shape),
            attention_norm_offset=rng.normal(size=shape),
        )
    batch = draw(jax.random.key(1), distribution(spec.task), 1)
    return Model(spec, params), jax.tree.map(lambda leaf: leaf[0], batch)


@pytest.mark.parametrize("norm", SPECS)
def test_what_is_written_is_what_the_stream_gains(norm):
    model, prompt = drawn(norm)
    rows = np.asarray(model.forward(prompt).stream)[:, -1]
    gained = ((rows[1:] - rows[:-1]) ** 2).sum(1) / (rows[:-1] ** 2).sum(1)
    _, written = compute.sizes_at_query(model, prompt)
    np.testing.assert_allclose(written, gained, rtol=1e-9)


@pytest.mark.parametrize("norm", SPECS)
def test_with_equal_keys_the_update_is_as_large_as_what_heads_write(norm):
    """κ = 1 for all pairs: |ΔW|² is that of the mean value."""
    model, prompt = drawn(norm)
    params = model.params.replace(w_k=0 * model.params.w_k)
    update, _ = compute.sizes_at_query(model.replace(params=params), prompt)
    by_heads, length = 0, (np.asarray(model.forward(prompt).stream)[0, -1] ** 2).sum()
    for head in range(model.spec.architecture.heads):
        gate = (np.arange(model.spec.architecture.heads) == head)[None, :, None, None]
        alone = model.replace(params=params.replace(w_o=gate * params.w_o))
        rows = np.asarray(alone.forward(prompt).stream)
        by_heads += ((rows[1] - rows[0])[-1] ** 2).sum()
    np.testing.assert_allclose(update[0], by_heads / length, rtol=1e-9)


@pytest.mark.parametrize("norm", SPECS)
def test_sizes_do_not_change_with_the_units_of_the_stream(norm):
    """What is read in and written c times as large: the same function, but for a norm's ε."""
    model, prompt = drawn(norm)
    units, params = 16.0, model.params
    read = {} if norm == "with" else {name: getattr(params, name) / units for name in READ}
    ends = {"read_in": units * params.read_in, "read_out": params.read_out / units}
    scaled = params.replace(w_o=units * params.w_o, **ends, **read)
    other = model.replace(params=scaled)
    answers = [m.predict(jax.tree.map(lambda leaf: leaf[None], prompt)) for m in (model, other)]
    np.testing.assert_allclose(*answers, rtol=1e-3)
    sizes = [compute.sizes_at_query(m, prompt) for m in (model, other)]
    np.testing.assert_allclose(*sizes, rtol=1e-3)


def test_shrunk_layers_write_so_much_less():
    model, prompt = drawn("without")
    less = model.replace(params=compute.shrink(model.params, 0.25))
    rows, fewer = (np.asarray(m.forward(prompt).stream)[:2, -1] for m in (model, less))
    np.testing.assert_allclose(fewer[1] - fewer[0], 0.25 * (rows[1] - rows[0]), rtol=1e-9)


def test_the_factor_is_that_which_is_best_for_the_other_pairs():
    ratios = np.array([[0.5, 1.0], [2.0, 0.9], [2.0, 0.8]])
    np.testing.assert_array_equal(claims.best_of_the_others(ratios), [1.0, 0.9, 0.8])
    np.testing.assert_array_equal(claims.best_of_the_others(ratios[:2]), [1.0, 2.0])


def test_every_pair_is_compared_with_itself():
    risk = np.array([[[9.0, 4.0, 2.0], [9.0, 8.0, 4.0]], [[9.0, 2.0, 1.0], [9.0, 2.0, 3.0]]])
    update = np.array([[[3.0, 4.0], [6.0, 8.0]], [[4.0, 3.0], [3.0, 4.0]]])
    written = np.array([[[1.0, 4.0], [2.0, 2.0]], [[1.0, 1.0], [8.0, 2.0]]])
    shrunk = np.array([[[3.0, 1.0], [2.0, 5.0]], [[1.0, 1.0], [1.0, 1.0]]])
    dataset = xr.Dataset(
        {
            "risk": (("norm", "run", "step"), risk),
            "ridge": (("run",), np.array([0.5, 2.0])),
            "update": (("norm", "run", "layer"), update),
            "written": (("norm", "run", "layer"), written),
            "shrunk": (("norm", "run", "shrinkage"), shrunk),
        },
        {"norm": ["without", "with"]},
    )
    ours = claims.samples(dataset)
    np.testing.assert_allclose(ours["helps"], [0.5, 0.75])
    np.testing.assert_allclose(ours["smaller_updates"], [1, 0.5])
    np.testing.assert_allclose(ours["smaller_writes"], [0.5, 2])
    np.testing.assert_allclose(ours["shrinking_helps"], [1.5, 1.25])
    np.testing.assert_allclose(ours["trains_faster"], [0.5, 0.25])
    np.testing.assert_allclose(claims.over_ridge(dataset).sel(norm="with")[0], [18, 4, 2])


def test_pairs_differ_by_their_norms_alone():
    for config in TIERS.values():
        spec = normed(config.plain)
        assert spec.architecture.norm
        assert dataclasses.replace(spec.architecture, norm=False) == config.plain.architecture
        assert (spec.task, spec.training) == (config.plain.task, config.plain.training)
    with pytest.raises(ValueError, match="choose softmax attention without norms"):
        Config(normed(PLAIN))
