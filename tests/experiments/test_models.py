"""Models are what their Specs say, and their weights those of the Spec that is asked for."""

import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.models import model, named, runs, tasks, train, trained
from experiments.models.model import Model
from experiments.models.regression import dense
from experiments.models.specs import Classes, Spec, restored
from lsa_lab import prompts
from lsa_lab.models.trace import predict
from lsa_lab.store import results

TINY = named.MODELS["smoke"]["depth 3"]
SHORT = dict(steps=4, batch=4, learning_rate=0.01, seeds=2)
MERGED = dense("linear", 2, 4, 2, training=SHORT)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))


def small_models(patch, folder):
    """One small model in place of the committed ones, and a folder of its own."""
    patch.setattr(train, "WEIGHTS", folder / "weights")
    patch.setitem(named.MODELS, "laptop", {"tiny one": TINY})
    patch.setattr(train, "ON_THE_WAY", {"tiny one": (1, 2)})
    patch.setattr(train.process, "configure", lambda: None)
    return folder / "weights"


@pytest.fixture
def store(tmp_path, monkeypatch):
    return small_models(monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSA_LAB_CACHE", str(folder / "cache"))
        weights = small_models(patch, folder)
        assert train.main([]) == 0
    return weights


@pytest.fixture
def committed(store, trained_once):
    """The store with its one model."""
    return shutil.copytree(trained_once, store)


draw = jax.jit(tasks.draw, static_argnums=2)
init = jax.jit(model.init, static_argnums=0)
predictions, risk = jax.jit(Model.predict), jax.jit(Model.risk)


def changed(spec: Spec, group: str, **changes) -> Spec:
    values = dataclasses.replace(getattr(spec, group), **changes)
    return dataclasses.replace(spec, **{group: values})


def same(a, b, rtol=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol), a, b)


def resolved(spec, **rest):
    """The runs of one model that an experiment names."""
    return trained.resolve((("tiny one", spec),), "test", **rest)["tiny one"]


def weights(spec: Spec) -> np.ndarray:
    leaves = jax.tree.leaves(resolved(spec).params)
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


def kept(tmp_path) -> dict:
    files = (tmp_path / "cache" / "trained").iterdir()
    return {file.name: file.stat().st_mtime_ns for file in files}


def test_weights_are_written_once_and_read_back(store, monkeypatch, capsys):
    assert train.main([]) == 0
    assert "tiny one" in capsys.readouterr().out
    names = sorted(file.name for file in store.iterdir())
    assert names == ["log.jsonl", "provenance.jsonl", "tiny_one.npz"]
    line = json.loads((store / "provenance.jsonl").read_text())
    assert line["spec"] == results.plain(TINY)
    assert "git_commit" in line
    fresh = resolved(TINY, retrain=True)
    monkeypatch.setattr(train, "train", None)  # nobody trains from here on
    read = resolved(TINY)
    same((read.params, read.checkpoints, read.loss), (fresh.params, fresh.checkpoints, fresh.loss))
    assert read.finished.all()
    assert {end.kind for end in read.status} == {"finished"}
    same((read.initial, read.path), (fresh.initial, fresh.path))
    np.testing.assert_array_equal(read.path_steps, fresh.path_steps)
    last = jax.tree.map(lambda leaf: leaf[:, -1], read.checkpoints)
    same(last, read.models().params)


def test_a_file_with_some_checkpoints_has_the_path_through_these(committed, tmp_path):
    fresh, steps = resolved(TINY), TINY.training.steps
    for parts, places in {(): [0, -1], (1,): [0, 1, -1], (2,): [0, -1]}.items():
        runs.write(tmp_path / "tiny.npz", fresh, parts=parts)
        read = dataclasses.replace(runs.read(tmp_path / "tiny.npz", TINY), initial=fresh.initial)
        same(read.path, jax.tree.map(lambda leaf, at=places: leaf[:, at], fresh.path))
        assert read.path_steps.tolist() == [0, *([steps // 2] if 1 in parts else []), steps]


def test_a_run_that_diverged_is_read_back_as_one(tmp_path):
    fresh = resolved(MERGED)
    taken = fresh.taken - [[0, 3]]
    runs.write(tmp_path / "merged.npz", dataclasses.replace(fresh, taken=taken))
    read = runs.read(tmp_path / "merged.npz", MERGED)
    assert [end.kind for end in read.status] == ["finished", "diverged"]
    assert read.finished.tolist() == [[True, False]]


def test_who_asks_again_gets_the_same_weights_and_who_asks_for_others_gets_those(
    tmp_path, monkeypatch
):
    """Others are those of another number, of other code and of another device."""
    base = weights(MERGED)
    before = kept(tmp_path)
    np.testing.assert_array_equal(base, weights(MERGED))
    assert kept(tmp_path) == before  # untrained
    assert not np.array_equal(base, weights(changed(MERGED, "training", seed=1)))
    assert not np.array_equal(base, weights(changed(MERGED, "task", noise_std=0.5)))
    count = len(kept(tmp_path))
    monkeypatch.setattr(train, "_code", lambda: "edited")
    weights(MERGED)
    assert len(kept(tmp_path)) == count + 1
    gpu = train.provenance.arithmetic() | {"device": "NVIDIA H100"}
    monkeypatch.setattr(train.provenance, "arithmetic", lambda: gpu)
    weights(MERGED)
    assert len(kept(tmp_path)) == count + 2


def test_committed_weights_of_another_spec_are_refused_by_the_number(committed, monkeypatch):
    noisier = changed(TINY, "task", noise_std=0.75)
    assert resolved(noisier).status, "a Spec that nobody committed is trained"
    monkeypatch.setitem(named.MODELS, "laptop", {"tiny one": noisier})
    with pytest.raises(ValueError, match=r"task.noise_std = 0.5 in the file.*retrain=True"):
        resolved(noisier)


def spoilt(file, **changes):
    """The file with other arrays; None takes one out."""
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files} | changes
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez_compressed(file, **arrays)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {"params.w_kq": None}, r"params.w_kq ought to be float32 \(3, 2, 2, 2, 5, 5\)"),
        (lambda a: {"params.w_kq": a["params.w_kq"][:, :1]}, "params.w_kq ought to be"),
        (lambda a: {"params.w_pv": a["params.w_pv"].astype(float)}, "ought to be float32"),
        (lambda a: {"params.w_q": a["params.w_kq"]}, "params.w_q ought to be not there"),
        (lambda a: {"checkpoints.w_pv": np.nan * a["checkpoints.w_pv"]}, "is not finite"),
        (lambda a: {"spec": None}, "'spec'"),
        (lambda a: {"bomb": np.zeros(1 << 21)}, "would unpack to 16 MiB"),
    ],
)
def test_a_damaged_file_is_refused_with_advice(committed, change, words):
    file = committed / "tiny_one.npz"
    with np.load(file) as stored:
        changes = change({name: stored[name] for name in stored.files})
    spoilt(file, **changes)
    with pytest.raises(ValueError, match=f"tiny_one.npz is damaged: .*{words}") as caught:
        resolved(TINY)
    command = "python -m experiments.models.train --tier laptop 'tiny one'"
    assert command in str(caught.value)


def test_a_file_with_other_bytes_is_refused(committed):
    file = committed / "tiny_one.npz"
    good = file.read_bytes()
    entry = good.index(b"PK\1\2")  # of the archive's directory: at 8 its flags, at 10 the packing
    encrypted, packed = (
        good[: entry + at] + byte + good[entry + at + 1 :] for at, byte in ((8, b"\1"), (10, b"c"))
    )
    cut, spoiled = good[:-30], good[:500] + bytes(100) + good[600:]
    for bad in (cut, spoiled, b"", b"PK", encrypted, packed):
        file.write_bytes(bad)
        with pytest.raises(ValueError, match=r"tiny_one.npz is damaged"):
            resolved(TINY)


def test_every_named_model_has_its_weights_and_their_digest_in_seven_megabytes():
    for name, spec in named.MODELS["laptop"].items():
        file = train.file_of(name)
        read = runs.read(file, spec)
        assert trained._record(file)["digest"] == read.digest, name
        assert read.parts == train.ON_THE_WAY.get(name, ())
        assert read.loss.shape[:2] == (len(spec.architecture.rows), spec.training.seeds)
    assert sum(file.stat().st_size for file in train.WEIGHTS.iterdir()) < 7 << 20


def test_heads_that_a_variant_lacks_are_zero_and_unheard(committed):
    every = resolved(TINY)
    gates = model.gates_of(TINY.architecture)[0]
    alone = jax.tree.map(lambda leaf: leaf[0], every.models(0).cast_float64())
    np.testing.assert_array_equal(alone.gates, gates)
    np.testing.assert_array_equal(np.abs(alone.params.w_kq).max((2, 3)) > 0, gates > 0)
    batch = draw(jax.random.key(1), tasks.distribution(TINY.task), 3)
    params = jax.tree.map(
        lambda leaf: np.where(gates[:, :, None, None] > 0, leaf, 1e3), alone.params
    )
    loud = alone.replace(params=params)
    np.testing.assert_array_equal(predictions(alone, batch), predictions(loud, batch))


@pytest.mark.parametrize("name", ["depth 3", "softmax"])
def test_predictions_are_those_of_the_trace(name):
    spec = named.MODELS["smoke"][name]
    params = model.init(spec, jax.random.key(2))
    one_variant = Model(spec, params, model.gates_of(spec.architecture)[1]).cast_float64()
    batch = tasks.draw(jax.random.key(3), tasks.distribution(spec.task), 3)

    def of_trace(prompt):
        return prompts.normalised(prompt)[1] * predict(one_variant.forward(prompt))

    expected = jax.jit(jax.vmap(of_trace))(batch)
    np.testing.assert_allclose(predictions(one_variant, batch), expected, atol=1e-12)
    merged = one_variant.plain()
    assert merged.spec.architecture.merged == (name != "softmax")
    np.testing.assert_allclose(merged.predict(batch), expected, atol=1e-12)


def test_a_risk_is_finite_where_a_model_explodes():
    params = init(TINY, jax.random.key(0))
    exploding = Model(TINY, jax.tree.map(lambda leaf: jnp.full(leaf.shape, 1e30), params))
    batch = jax.device_get(draw(jax.random.key(4), tasks.distribution(TINY.task, 4), 8))
    largest = 2 * np.abs(batch.y).max(1)
    assert 0 < risk(exploding, batch) <= ((largest + np.abs(batch.y_query)) ** 2).mean()


def test_a_spec_is_saved_whole_and_restored(tmp_path):
    import xarray as xr

    classes = dataclasses.replace(MERGED, task=Classes(2, (4,)))
    for spec in (*named.MODELS["paper"].values(), MERGED, classes):
        file = tmp_path / "result.nc"
        results.save(xr.Dataset({"x": 1.0}), file, config={"model": results.plain(spec)})
        assert restored(results.config_of(results.load(file)).model) == spec == restored(spec)


@pytest.mark.parametrize("change", [lambda w: 1.05 * w, lambda w: w[:, ::-1]])
def test_weights_that_are_scaled_or_whose_seeds_are_reversed_are_refused(committed, change):
    file = committed / "tiny_one.npz"
    with np.load(file) as stored:
        leaves = {name: stored[name] for name in stored.files if name.startswith("params")}
    spoilt(file, **{name: change(leaf).astype(leaf.dtype) for name, leaf in leaves.items()})
    with pytest.raises(ValueError, match=r"other weights than those that provenance\.jsonl"):
        resolved(TINY)
