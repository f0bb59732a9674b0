"""Sizes of updates and the freedom of keys, shrunk writes, and ratios of pairs, by hand."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.descent.norms_and_updates import by_shots, claims, compute
from experiments.descent.norms_and_updates.config import TIERS, Config, pair
from experiments.models.model import Model, init
from experiments.models.tasks import distribution, draw
from lsa_lab.judging.statements import samples_of

READ = ("w_q", "w_k", "w_v")  # what reads the stream
(_, PLAIN), (_, NORMED), *_ = TIERS["smoke"].models
SPECS = {"without": PLAIN, "with": NORMED}
BATCH = draw(jax.random.key(2), distribution(PLAIN.task), 16)


def random_model(norm):
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
    model, prompt = random_model(norm)
    rows = np.asarray(model.forward(prompt).stream)[:, -1]
    gained = ((rows[1:] - rows[:-1]) ** 2).sum(1) / (rows[:-1] ** 2).sum(1)
    _, written = compute.sizes_at_query(model, prompt)
    np.testing.assert_allclose(written, gained, rtol=1e-9)


@pytest.mark.parametrize("norm", SPECS)
def test_with_equal_keys_the_update_is_as_large_as_what_heads_write(norm):
    """κ = 1 for all pairs: |ΔW|² is that of the mean value."""
    model, prompt = random_model(norm)
    params = model.params.replace(w_k=0 * model.params.w_k)
    update, _ = compute.sizes_at_query(model.replace(params=params), prompt)
    by_heads, length = 0, (np.asarray(model.forward(prompt).stream)[0, -1] ** 2).sum()
    for head in range(model.spec.architecture.heads):
        gate = (np.arange(model.spec.architecture.heads) == head)[None, :, None, None]
        alone = model.replace(params=params.replace(w_o=gate * params.w_o))
        rows = np.asarray(alone.forward(prompt).stream)
        by_heads += ((rows[1] - rows[0])[-1] ** 2).sum()
    np.testing.assert_allclose(update[0], by_heads / length, rtol=1e-9)


def in_other_units(model, units):
    """What is read in and written so many times as large: the same function, but for a norm's ε."""
    params = model.params
    norm = model.spec.architecture.norm
    read = {} if norm else {name: getattr(params, name) / units for name in READ}
    ends = {"read_in": units * params.read_in, "read_out": params.read_out / units}
    return model.replace(params=params.replace(w_o=units * params.w_o, **ends, **read))


@pytest.mark.parametrize("norm", SPECS)
def test_sizes_do_not_change_with_the_units_of_the_stream(norm):
    model, _ = random_model(norm)
    other = in_other_units(model, 16.0)
    np.testing.assert_allclose(other.predict(BATCH), model.predict(BATCH), rtol=1e-3)
    for sizes in (own_sizes, balanced_sizes):
        np.testing.assert_allclose(sizes(other, BATCH), sizes(model, BATCH), rtol=1e-3)


def turned(model, key=1.0, *, shift=0.0):
    """The same function: keys changed by a random A of every head, queries by its inverse. With
    norms also a vector added to all keys: 1 · (u - offset) / scale = 0 of every row u."""
    params, rng = model.params, np.random.default_rng(3)
    changes = key * rng.normal(size=(*params.w_k.shape[:3], params.w_k.shape[2]))
    inverse = np.linalg.inv(changes).swapaxes(-1, -2)
    w_k, w_q = changes @ params.w_k, inverse @ params.w_q
    if shift:
        vectors = shift * rng.normal(size=w_k.shape[:3])
        w_k = w_k + vectors[..., None] / params.attention_norm_scale[:, None, None]
    return model.replace(params=params.replace(w_k=w_k, w_q=w_q))


def balanced_sizes(model, batch):  # -> [B, L]
    form = compute.forms(model, batch)
    return jax.vmap(lambda prompt: compute.sizes_at_query(model, prompt, form)[0])(batch)


def own_sizes(model, batch):  # -> [B, L]
    return jax.vmap(lambda prompt: compute.sizes_at_query(model, prompt)[0])(batch)


SAME = [(norm, dict(key=key)) for norm in SPECS for key in (1.0, 100.0)]


@pytest.mark.parametrize(("norm", "change"), [*SAME, ("with", dict(shift=1.0))])
def test_sizes_do_not_change_with_keys_and_queries_of_the_same_function(norm, change):
    model, _ = random_model(norm)
    other = turned(model, **change)
    np.testing.assert_allclose(other.predict(BATCH), model.predict(BATCH), rtol=1e-7, atol=1e-9)
    ours, theirs = (balanced_sizes(m, BATCH) for m in (model, other))
    np.testing.assert_allclose(theirs, ours, rtol=1e-6)


@pytest.mark.parametrize("norm", SPECS)
def test_control_sizes_with_keys_as_trained_change_with_them(norm):
    model, _ = random_model(norm)
    ours, theirs = (own_sizes(m, BATCH) for m in (model, turned(model, key=3.0)))
    assert np.median(np.abs(np.log(theirs / ours))) > 0.1


def test_what_no_token_reads_of_a_key_matrix_leaves_balanced_sizes():
    """Rows of the first layer have d + 1 directions of D: the rest of W_K is never read."""
    model, _ = random_model("without")
    params = model.params
    unread = np.linalg.svd(params.read_in)[0][:, 3:]  # [D, D - 3]
    more = np.random.default_rng(0).normal(size=(*params.w_k.shape[1:3], unread.shape[1]))
    w_k = np.array(params.w_k)
    w_k[0] += more @ unread.T
    other = model.replace(params=params.replace(w_k=w_k))
    ours, theirs = (balanced_sizes(m, BATCH) for m in (model, other))
    np.testing.assert_allclose(theirs, ours, rtol=1e-9)


def test_shrunk_layers_write_so_much_less():
    model, prompt = random_model("without")
    less = model.replace(params=compute.shrink(model.params, 0.25))
    rows, fewer = (np.asarray(m.forward(prompt).stream)[:2, -1] for m in (model, less))
    np.testing.assert_allclose(fewer[1] - fewer[0], 0.25 * (rows[1] - rows[0]), rtol=1e-9)


def test_writes_and_answers_are_shrunk_on_the_noisier_prompts():
    model, _ = random_model("without")
    config = dataclasses.replace(TIERS["smoke"], shrinkages=(0.5,))
    keys = jax.random.split(jax.random.key(0), 2)
    own, noisy = (draw(key, distribution(PLAIN.task), 16) for key in keys)
    path = jax.tree.map(lambda leaf: np.stack([0 * leaf, leaf]), model.params)
    values = compute.measure(PLAIN, config, (path, own, noisy))
    less = model.replace(params=compute.shrink(model.params, 0.5))
    np.testing.assert_allclose(values["risk"][1], model.errors(own).mean())
    np.testing.assert_allclose(values["shrunk"], [m.errors(noisy).mean() for m in (model, less)])
    halves = (model.predict(noisy) / 2 - noisy.y_query) ** 2
    np.testing.assert_allclose(values["answers"], [model.errors(noisy).mean(), halves.mean()])


def test_noisier_prompts_differ_by_their_noise_alone():
    config = dataclasses.replace(TIERS["smoke"], noisier=3.0)
    keys = jax.random.split(jax.random.key(0), 1)
    own, noisy = (compute.prompts_of(PLAIN.task, config, keys, times) for times in (1.0, 3.0))
    np.testing.assert_array_equal(own.x, noisy.x)
    np.testing.assert_array_equal(own.y_query, noisy.y_query)
    noiseless = compute.prompts_of(PLAIN.task, config, keys, 0.0)
    np.testing.assert_allclose(noisy.y - noiseless.y, 3 * (own.y - noiseless.y), atol=1e-12)


def test_the_factor_is_that_which_is_best_for_the_other_pairs():
    ratios = np.array([[0.5, 1.0], [2.0, 0.9], [2.0, 0.8]])
    np.testing.assert_allclose(claims.best_of_the_others(ratios), [1.0, 0.9, 0.8])
    np.testing.assert_array_equal(claims.best_of_the_others(ratios[:2]), [1.0, 2.0])


def test_every_pair_is_compared_with_itself():
    risk = np.array([[[9.0, 4.0, 2.0], [9.0, 8.0, 4.0]], [[9.0, 2.0, 1.0], [9.0, 2.0, 3.0]]])
    update = np.array([[[3.0, 4.0], [6.0, 8.0]], [[4.0, 3.0], [3.0, 4.0]]])
    written = np.array([[[1.0, 4.0], [2.0, 2.0]], [[1.0, 1.0], [8.0, 2.0]]])
    shrunk = np.array([[[2.0, 3.0, 1.0], [4.0, 2.0, 5.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]])
    dataset = xr.Dataset(
        {
            "risk": (("norm", "run", "step"), risk),
            "ridge": (("run",), np.array([0.5, 2.0])),
            "update": (("norm", "run", "layer"), update),
            "written": (("norm", "run", "layer"), written),
            "shrunk": (("norm", "run", "shrinkage"), shrunk),
            "answers": (("norm", "run", "shrinkage"), shrunk[::-1]),
        },
        {"norm": ["without", "with"]},
    )
    ours = samples_of(claims.about_norms(TIERS["laptop"]), dataset)
    np.testing.assert_allclose(ours["helps"], [0.5, 0.75])
    np.testing.assert_allclose(ours["smaller_updates"], [1, 0.5])
    np.testing.assert_allclose(ours["smaller_writes"], [0.5, 2])
    np.testing.assert_allclose(ours["shrinking_helps_noisy"], [1.5, 1.25])
    np.testing.assert_allclose(claims.shrunk_ratios(dataset, what="answers"), np.ones((2, 2)))
    np.testing.assert_allclose(ours["shrinking_beats_answers"], [1.5, 1.25])
    np.testing.assert_allclose(claims.ratio_to_ridge(dataset).sel(norm="with")[0], [18, 4, 2])


def test_pairs_differ_by_their_norms_alone():
    assert NORMED.architecture.norm
    architecture = dataclasses.replace(NORMED.architecture, norm=False)
    assert dataclasses.replace(NORMED, architecture=architecture) == PLAIN
    with pytest.raises(ValueError, match="choose softmax attention without norms"):
        Config(pair(NORMED))
    with pytest.raises(ValueError, match="alike but for their norms"):
        Config(TIERS["smoke"].models[:1])


def test_balanced_keys_have_mean_zero_and_the_second_moments_of_the_queries():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 3))
    keys, queries = 2 + rng.normal(size=(50, 4)) @ mixing, rng.normal(size=(20, 3))
    form = by_shots.balanced(keys, queries)
    values, vectors = np.linalg.eigh(form.metric)
    change = np.sqrt(values)[:, None] * vectors.T  # AᵀA is the metric
    ours, theirs = (keys - form.mean) @ change.T, queries @ np.linalg.inv(change)
    np.testing.assert_allclose(ours.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(ours.T @ ours / 50, theirs.T @ theirs / 20, rtol=1e-9, atol=1e-12)


def test_keys_that_no_query_reads_have_no_length():
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(20, 3)) * [1, 1, 0]
    form = by_shots.balanced(rng.normal(size=(50, 3)) * [1, 2, 3], queries)
    assert np.linalg.matrix_rank(form.metric, tol=1e-9) == 2
