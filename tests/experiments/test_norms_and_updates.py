"""Sizes of updates, the freedom of keys, and shrunk writes, by hand."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from experiments.descent.norms_and_updates import by_shots, compute
from experiments.descent.norms_and_updates.config import TIERS
from experiments.models.model import Model, init
from experiments.models.tasks import distribution, draw

READ = ("w_q", "w_k", "w_v")  # what reads the stream
(_, PLAIN), (_, NORMED), *_ = TIERS["smoke"].models
SPECS = {"without": PLAIN, "with": NORMED}
draw = jax.jit(draw, static_argnums=2)
BATCH = draw(jax.random.key(2), distribution(PLAIN.task), 16)


@functools.cache
def random_model(norm):
    """A model with random weights, scales and offsets, and a prompt."""
    spec, rng = SPECS[norm], np.random.default_rng(0)
    params = jax.jit(init, static_argnums=0)(spec, jax.random.key(0))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), params)
    if norm == "with":
        shape = params.attention_norm_scale.shape
        params = params.replace(
            attention_norm_scale=rng.normal(size=shape),
            attention_norm_offset=rng.normal(size=shape),
        )
    batch = jax.tree.map(np.asarray, draw(jax.random.key(1), distribution(spec.task), 1))
    return Model(spec, params), jax.tree.map(lambda leaf: leaf[0], batch)


sizes_at_query = jax.jit(compute.sizes_at_query)
stream_of = jax.jit(lambda model, prompt: model.forward(prompt).stream)
predict = jax.jit(lambda model, batch: model.predict(batch))


@pytest.mark.parametrize("norm", SPECS)
def test_with_equal_keys_the_update_is_as_large_as_what_heads_write(norm):
    """κ = 1 for all pairs: |ΔW|² is that of the mean value."""
    model, prompt = random_model(norm)
    params = model.params.replace(w_k=0 * model.params.w_k)
    update = sizes_at_query(model.replace(params=params), prompt)
    by_heads, length = 0, (np.asarray(stream_of(model, prompt))[0, -1] ** 2).sum()
    for head in range(model.spec.architecture.heads):
        gate = (np.arange(model.spec.architecture.heads) == head)[None, :, None, None]
        alone = model.replace(params=params.replace(w_o=gate * params.w_o))
        rows = np.asarray(stream_of(alone, prompt))
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
    np.testing.assert_allclose(predict(other, BATCH), predict(model, BATCH), rtol=1e-3)
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


@jax.jit
def balanced_sizes(model, batch):  # -> [B, L]
    form = compute.forms(model, batch)
    return jax.vmap(lambda prompt: compute.sizes_at_query(model, prompt, form)[0])(batch)


@jax.jit
def own_sizes(model, batch):  # -> [B, L]
    return jax.vmap(lambda prompt: compute.sizes_at_query(model, prompt)[0])(batch)


SAME = [(norm, dict(key=key)) for norm in SPECS for key in (100.0,)]


@pytest.mark.parametrize(("norm", "change"), [*SAME, ("with", dict(shift=1.0))])
def test_sizes_do_not_change_with_keys_and_queries_of_the_same_function(norm, change):
    model, _ = random_model(norm)
    other = turned(model, **change)
    np.testing.assert_allclose(predict(other, BATCH), predict(model, BATCH), rtol=1e-7, atol=1e-9)
    ours, theirs = (balanced_sizes(m, BATCH) for m in (model, other))
    np.testing.assert_allclose(theirs, ours, rtol=1e-6)


@pytest.mark.parametrize("norm", SPECS)
def test_control_sizes_with_keys_as_trained_change_with_them(norm):
    model, _ = random_model(norm)
    ours, theirs = (own_sizes(m, BATCH) for m in (model, turned(model, key=3.0)))
    assert np.median(np.abs(np.log(theirs / ours))) > 0.1


def test_writes_and_answers_are_shrunk_on_the_noisier_prompts():
    model, _ = random_model("without")
    config = dataclasses.replace(TIERS["smoke"], shrinkages=(0.5,))
    keys = jax.random.split(jax.random.key(0), 2)
    own, noisy = (draw(key, distribution(PLAIN.task), 16) for key in keys)
    path = jax.tree.map(lambda leaf: np.stack([0 * leaf, leaf]), model.params)
    values = compute.measure(PLAIN, config, (path, own, noisy))
    less = model.replace(params=compute.shrink(model.params, 0.5))
    risk = jax.jit(lambda model, batch: model.errors(batch).mean())
    np.testing.assert_allclose(values["risk"][1], risk(model, own))
    np.testing.assert_allclose(values["shrunk"], [risk(m, noisy) for m in (model, less)])
    halves = (np.asarray(predict(model, noisy)) / 2 - np.asarray(noisy.y_query)) ** 2
    np.testing.assert_allclose(values["answers"], [risk(model, noisy), halves.mean()])


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
