"""Models are what their Specs say, and weights those of the Spec that is asked for."""

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from experiments.models import model, named, runs, tasks, train
from experiments.models.model import Model
from experiments.models.specs import Spec, dense_spec
from lsa_lab import prompts
from lsa_lab.interop.weights import read_arrays, write_arrays
from lsa_lab.models.trace import predict

SHORT = dict(steps=4, batch=4, learning_rate=0.01, seeds=2)
MERGED = dense_spec("linear", 2, 4, 2, training=SHORT)


def change(spec: Spec, group: str, **changes) -> Spec:
    values = dataclasses.replace(getattr(spec, group), **changes)
    return dataclasses.replace(spec, **{group: values})


HEADS = dict(heads=2, variants=((1, 1), (2, 1), (2, 2)), padding_slots=2, normalise_prompt=True)
VARIANTS = change(change(MERGED, "task", lengths=(4, 8)), "architecture", **HEADS)
VARIANTS = change(VARIANTS, "training", checkpoints=2)
SOFTMAX = change(VARIANTS, "architecture", kernel="softmax", key_width=2, init_scale=1.0)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the weights of one small model."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSA_LAB_CACHE", str(folder / "cache"))
        name_one_model(patch, folder / "weights")
        assert train.main([]) == 0
    return folder / "weights"


def name_one_model(patch, weights):
    patch.setattr(train, "WEIGHTS", weights)
    patch.setattr(train, "MODELS", {"small one": VARIANTS})
    patch.setattr(train, "CHECKPOINTS", {"small one": (1, 2)})
    patch.setattr(train.settings, "configure", lambda: None)


@pytest.fixture
def committed(written, tmp_path, monkeypatch):
    """The file of the one model that is committed."""
    name_one_model(monkeypatch, shutil.copytree(written, tmp_path / "weights"))
    return tmp_path / "weights" / "small_one.safetensors"


draw = jax.jit(tasks.draw, static_argnums=2)
init = jax.jit(model.init, static_argnums=0)
predictions = jax.jit(Model.predict)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def load(spec):
    return train.load(spec, "small one")


def test_committed_weights_and_their_path_are_those_of_a_new_training(committed, monkeypatch):
    fresh = runs.collect(VARIANTS, train.train(VARIANTS, "fresh"))
    monkeypatch.setattr(train, "train", None)  # nothing is trained from here on
    read = load(VARIANTS)
    assert_same((read.params, read.path), (fresh.params, fresh.path))
    np.testing.assert_allclose(read.loss, fresh.loss, rtol=1e-6)
    assert read.finished.all()
    assert_same(read.models().params, jax.tree.map(lambda leaf: leaf[:, -1], read.checkpoints))
    assert {"commit", "versions", "device", "seconds"} <= read.facts.keys()
    first = jax.tree.map(lambda leaf: leaf[:, 0], read.path)  # before the training
    keys = jax.random.split(jax.random.split(jax.random.key(0))[0], 6)[-2:]
    drawn = jax.vmap(lambda key: init(VARIANTS, key))(keys)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), first, drawn)


def test_a_file_with_some_checkpoints_has_the_path_through_these(committed, tmp_path):
    full, steps = load(VARIANTS), VARIANTS.training.steps
    for parts, places in {(): [0, -1], (1,): [0, 1, -1], (2,): [0, -1]}.items():
        runs.save(tmp_path / "some.safetensors", full, parts=parts)
        read = runs.read(tmp_path / "some.safetensors", VARIANTS)
        assert_same(read.path, jax.tree.map(lambda leaf, at=places: leaf[:, at], full.path))
        assert read.path_steps.tolist() == [0, *([steps // 2] if 1 in parts else []), steps]


def test_a_run_that_diverged_is_read_as_diverged(committed):
    full = load(VARIANTS)
    steps = full.steps_completed - [[0, 3], [0, 0], [0, 0]]
    runs.save(committed, dataclasses.replace(full, steps_completed=steps))
    read = load(VARIANTS)
    assert read.finished.tolist() == [[True, False], [True, True], [True, True]]


def test_weights_are_kept_in_the_cache_for_each_spec_and_code(tmp_path, monkeypatch, capsys):
    base = load(MERGED)
    assert "training 2 runs of 4 steps" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(train, "train", None)
        assert load(MERGED).digest == base.digest
    assert load(change(MERGED, "training", seed=1)).digest != base.digest
    monkeypatch.setattr(train, "_code", lambda: "edited")
    load(MERGED)
    assert len(list((tmp_path / "cache" / "models").glob("*.safetensors"))) == 3


def test_other_arrays_damaged_bytes_and_weights_of_another_spec_are_refused(committed, monkeypatch):
    good, (arrays, metadata) = committed.read_bytes(), read_arrays(committed)
    w_kq, w_pv = (arrays.pop(f"params.{name}") for name in ("w_kq", "w_pv"))
    pairs = (w_kq[:, :1], w_pv), (w_kq, np.float32(1.05) * w_pv), (w_kq, w_pv[:, ::-1])
    for pair in (*pairs, (w_kq, w_pv.astype(float)), (w_kq,)):
        others = zip(("params.w_kq", "params.w_pv"), pair, strict=False)
        write_arrays(arrays | dict(others), committed, metadata)
        with pytest.raises(ValueError, match=r"small_one.safetensors is damaged"):
            load(VARIANTS)
    for bad in (good[:-30], good[:2000] + bytes(100) + good[2100:], b"", b"PK"):
        committed.write_bytes(bad)
        with pytest.raises(ValueError, match=r"small_one.safetensors"):
            load(VARIANTS)
    committed.write_bytes(good)
    noisier = change(VARIANTS, "task", noise_std=0.75)
    monkeypatch.setattr(train, "MODELS", {"small one": noisier})
    with pytest.raises(ValueError, match="weights of another Spec"):
        load(noisier)


def test_every_named_model_has_its_weights_in_nine_megabytes():
    for name, spec in named.MODELS.items():
        read = runs.read(train.weights_file(name), spec)
        assert read.parts == train.CHECKPOINTS.get(name, ())
        assert read.loss.shape[:2] == (len(spec.architecture.rows), spec.training.seeds)
        assert float(read.facts["seconds"]) > 0
    assert sum(file.stat().st_size for file in train.WEIGHTS.iterdir()) < 9 << 20


def test_heads_that_a_variant_lacks_are_zero_and_unheard(committed):
    gates = model.head_gates(VARIANTS.architecture)[0]
    alone = jax.tree.map(lambda leaf: leaf[0], load(VARIANTS).models(0).cast_float64())
    np.testing.assert_array_equal(alone.gates, gates)
    np.testing.assert_array_equal(np.abs(alone.params.w_kq).max((2, 3)) > 0, gates > 0)
    batch = draw(jax.random.key(1), tasks.distribution(VARIANTS.task), 3)
    heard = gates[:, :, None, None] > 0
    loud = alone.replace(params=jax.tree.map(lambda leaf: np.where(heard, leaf, 1e3), alone.params))
    np.testing.assert_array_equal(predictions(alone, batch), predictions(loud, batch))


@pytest.mark.parametrize("spec", [VARIANTS, SOFTMAX], ids=["linear", "softmax"])
def test_predictions_are_those_of_the_trace(spec):
    gates = model.head_gates(spec.architecture)[1]
    one_variant = Model(spec, init(spec, jax.random.key(2)), gates).cast_float64()
    batch = draw(jax.random.key(3), tasks.distribution(spec.task), 3)

    def predict_from_trace(prompt):
        return prompts.normalise(prompt)[1] * predict(one_variant.forward(prompt))

    expected = jax.jit(jax.vmap(predict_from_trace))(batch)
    np.testing.assert_allclose(predictions(one_variant, batch), expected, atol=1e-12)
    merged = one_variant.plain()
    assert merged.spec.architecture.merged == (spec is VARIANTS)
    np.testing.assert_allclose(predictions(merged, batch), expected, atol=1e-12)
