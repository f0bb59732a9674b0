"""Models are what their Specs say, and weights those of the Spec that is asked for."""

import dataclasses
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.models import model, named, runs, tasks, train
from experiments.models.model import Model
from experiments.models.specs import Spec, dense_spec
from lsa_lab import prompts
from lsa_lab.interop.weights import read_arrays, write_arrays
from lsa_lab.lab import catalogue
from lsa_lab.lab.run import Job
from lsa_lab.models.trace import predict

SHORT = dict(steps=4, batch=4, learning_rate=0.01, seeds=2)
MERGED = dense_spec("linear", 2, 4, 2, training=SHORT)
VARIANTS = dataclasses.replace(
    MERGED,
    task=dataclasses.replace(MERGED.task, lengths=(4, 8)),
    architecture=dataclasses.replace(
        MERGED.architecture,
        heads=2,
        variants=((1, 1), (2, 1), (2, 2)),
        padding_slots=2,
        normalise_prompt=True,
    ),
    training=dataclasses.replace(MERGED.training, checkpoints=2),
)


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
predictions, risk = jax.jit(Model.predict), jax.jit(Model.risk)


def change(spec: Spec, group: str, **changes) -> Spec:
    values = dataclasses.replace(getattr(spec, group), **changes)
    return dataclasses.replace(spec, **{group: values})


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def load(spec):
    return train.load_models({"small one": spec})["small one"]


def test_committed_weights_are_those_of_a_new_training(committed, monkeypatch):
    fresh = runs.collect(VARIANTS, train.train(VARIANTS, "fresh"))
    monkeypatch.setattr(train, "train", None)  # nothing is trained from here on
    read = load(VARIANTS)
    assert_same((read.params, read.checkpoints), (fresh.params, fresh.checkpoints))
    np.testing.assert_allclose(read.loss, fresh.loss, rtol=1e-6)
    assert read.finished.all()
    assert {end.kind for end in read.status} == {"finished"}
    assert_same(read.path, fresh.path)
    assert_same(read.models().params, jax.tree.map(lambda leaf: leaf[:, -1], read.checkpoints))
    assert {"commit", "versions", "device", "seconds"} <= read.facts.keys()


def test_the_path_starts_with_the_params_before_the_training(committed):
    read = load(VARIANTS)
    first = jax.tree.map(lambda leaf: leaf[:, 0], read.path)
    assert_same(first, read.initial)
    keys = jax.random.split(jax.random.split(jax.random.key(0))[0], 6)[-2:]
    drawn = jax.vmap(lambda key: model.init(VARIANTS, key))(keys)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), first, drawn)


def test_a_file_with_some_checkpoints_has_the_path_through_these(committed, tmp_path):
    full, steps = load(VARIANTS), VARIANTS.training.steps
    for parts, places in {(): [0, -1], (1,): [0, 1, -1], (2,): [0, -1]}.items():
        runs.save(tmp_path / "some.safetensors", full, parts=parts)
        read = runs.read(tmp_path / "some.safetensors", VARIANTS)
        assert_same(read.path, jax.tree.map(lambda leaf, at=places: leaf[:, at], full.path))
        assert read.path_steps.tolist() == [0, *([steps // 2] if 1 in parts else []), steps]


def test_a_run_that_diverged_is_read_as_diverged(tmp_path):
    fresh = load(MERGED)
    steps = fresh.steps_completed - [[0, 3]]
    runs.save(tmp_path / "one.safetensors", dataclasses.replace(fresh, steps_completed=steps))
    read = runs.read(tmp_path / "one.safetensors", MERGED)
    assert [end.kind for end in read.status] == ["finished", "diverged"]
    assert read.finished.tolist() == [[True, False]]


def test_weights_are_kept_in_the_cache_for_each_spec_code_and_device(tmp_path, monkeypatch, capsys):
    base = load(MERGED)
    assert "training 2 runs of 4 steps" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(train, "train", None)
        assert load(MERGED).digest == base.digest
    others = [change(MERGED, "training", seed=1), change(MERGED, "task", noise_std=0.5)]
    assert base.digest not in {load(spec).digest for spec in others}
    monkeypatch.setattr(train, "_code", lambda: "edited")
    load(MERGED)
    kept = list((tmp_path / "cache" / "models").glob("*.safetensors"))
    assert len(kept) == 4


def test_a_committed_file_of_another_spec_is_refused(committed, monkeypatch):
    noisier = change(VARIANTS, "task", noise_std=0.75)
    monkeypatch.setattr(train, "MODELS", {"small one": noisier})
    with pytest.raises(ValueError, match="weights of another Spec"):
        load(noisier)


def rewrite(file, edit):
    """Write the file again with edited arrays and the same metadata."""
    arrays, metadata = read_arrays(file)
    write_arrays(edit(arrays), file, metadata)


@pytest.mark.parametrize(
    "edit",
    [
        lambda a: {name: array for name, array in a.items() if name != "params.w_kq"},
        lambda a: a | {"params.w_kq": np.ascontiguousarray(a["params.w_kq"][:, :1])},
        lambda a: a | {"params.w_pv": 1.05 * a["params.w_pv"]},
        lambda a: a | {"params.w_pv": np.ascontiguousarray(a["params.w_pv"][:, ::-1])},
        lambda a: a | {"params.w_pv": a["params.w_pv"].astype(float)},
    ],
)
def test_other_arrays_are_refused(committed, edit):
    rewrite(committed, edit)
    with pytest.raises(ValueError, match=r"small_one.safetensors is damaged"):
        load(VARIANTS)


def test_damaged_bytes_are_refused(committed):
    good = committed.read_bytes()
    for bad in (good[:-30], good[:2000] + bytes(100) + good[2100:], b"", b"PK"):
        committed.write_bytes(bad)
        with pytest.raises(ValueError, match=r"small_one.safetensors"):
            load(VARIANTS)


def test_every_named_model_has_its_weights_in_nine_megabytes():
    for name, spec in named.MODELS.items():
        read = runs.read(train.weights_file(name), spec)
        assert read.parts == train.CHECKPOINTS.get(name, ())
        assert read.loss.shape[:2] == (len(spec.architecture.rows), spec.training.seeds)
        assert float(read.facts["seconds"]) > 0
    assert sum(file.stat().st_size for file in train.WEIGHTS.iterdir()) < 9 << 20


def test_the_lab_hands_models_to_compute_and_describes_them(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Config:
        models = {"one": MERGED}  # noqa: RUF012

    experiment = catalogue.Experiment("experiments", tmp_path / "none.py", tmp_path)
    loaded = Job(experiment, "smoke", Config(), tmp_path).load_models()
    assert loaded["one"].spec == MERGED
    assert loaded["one"].describe()["digest"] == load(MERGED).digest


def test_heads_that_a_variant_lacks_are_zero_and_unheard(committed):
    every = load(VARIANTS)
    gates = model.head_gates(VARIANTS.architecture)[0]
    alone = jax.tree.map(lambda leaf: leaf[0], every.models(0).cast_float64())
    np.testing.assert_array_equal(alone.gates, gates)
    np.testing.assert_array_equal(np.abs(alone.params.w_kq).max((2, 3)) > 0, gates > 0)
    batch = draw(jax.random.key(1), tasks.distribution(VARIANTS.task), 3)
    params = jax.tree.map(
        lambda leaf: np.where(gates[:, :, None, None] > 0, leaf, 1e3), alone.params
    )
    loud = alone.replace(params=params)
    np.testing.assert_array_equal(predictions(alone, batch), predictions(loud, batch))


SOFTMAX = change(VARIANTS, "architecture", kernel="softmax", key_width=2, init_scale=1.0)


@pytest.mark.parametrize("spec", [VARIANTS, SOFTMAX], ids=["linear", "softmax"])
def test_predictions_are_those_of_the_trace(spec):
    params = model.init(spec, jax.random.key(2))
    gates = model.head_gates(spec.architecture)[1]
    one_variant = Model(spec, params, gates).cast_float64()
    batch = tasks.draw(jax.random.key(3), tasks.distribution(spec.task), 3)

    def predict_from_trace(prompt):
        return prompts.normalise(prompt)[1] * predict(one_variant.forward(prompt))

    expected = jax.jit(jax.vmap(predict_from_trace))(batch)
    np.testing.assert_allclose(predictions(one_variant, batch), expected, atol=1e-12)
    merged = one_variant.plain()
    assert merged.spec.architecture.merged == (spec is VARIANTS)
    np.testing.assert_allclose(merged.predict(batch), expected, atol=1e-12)


def test_a_risk_is_finite_where_a_model_explodes():
    params = init(VARIANTS, jax.random.key(0))
    exploding = Model(VARIANTS, jax.tree.map(lambda leaf: jnp.full(leaf.shape, 1e30), params))
    batch = jax.device_get(draw(jax.random.key(4), tasks.distribution(VARIANTS.task, 4), 8))
    largest = 2 * np.abs(batch.y).max(1)
    assert 0 < risk(exploding, batch) <= ((largest + np.abs(batch.y_query)) ** 2).mean()


@pytest.mark.parametrize("name", named.MODELS)
def test_tiny_models_are_of_the_same_kind(name):
    spec, small = named.MODELS[name], named.tiny(name)
    assert small.training.steps <= 5
    assert small.training.seeds == 2
    for field in ("kernel", "keys", "norm", "normalise_prompt", "merged", "variants"):
        assert getattr(small.architecture, field) == getattr(spec.architecture, field)
