"""Committed weights are those of the families that experiments name, and can be made again."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.models import sparse_models, sparse_training
from experiments.models.specs import FAMILIES, Family
from lsa_lab import prompts
from lsa_lab.models.trace import predict

TINY = FAMILIES["smoke"]["depth 3"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))


@pytest.fixture
def store(tmp_path, monkeypatch):
    """One small family in place of those of the laptop tier, and a folder of its own."""
    monkeypatch.setattr(sparse_training, "WEIGHTS", tmp_path / "weights")
    monkeypatch.setitem(FAMILIES, "laptop", {"tiny one": TINY})
    monkeypatch.setattr(sparse_training, "LOOKED_AT", ("tiny one",))
    monkeypatch.setattr(sparse_training.process, "configure", lambda: None)
    return tmp_path / "weights"


def same(a, b, rtol=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol), a, b)


def test_weights_are_written_once_and_read_back(store, monkeypatch):
    sparse_training.main([])
    names = sorted(file.name for file in store.iterdir())
    assert names == ["log.jsonl", "provenance.jsonl", "tiny_one.npz"]
    assert "git_commit" in json.loads((store / "provenance.jsonl").read_text())
    fresh = sparse_training.trained("laptop", "tiny one", retrain=True)
    monkeypatch.setattr(sparse_training, "train", None)  # nobody trains from here on
    kept = sparse_training.trained("laptop", "tiny one")
    same(kept.params, fresh.params)
    same(kept.looks, fresh.looks)
    same(kept.loss, fresh.loss)
    assert (kept.taken == TINY.steps).all()
    same(
        jax.tree.map(lambda leaf: leaf[:, -1], kept.looks),
        jax.tree.map(lambda x: x[-1], kept.params),
    )


def test_weights_of_another_family_are_refused(store, monkeypatch):
    sparse_training.main(["tiny one"])
    longer = dataclasses.replace(TINY, noise_std=0.25)
    monkeypatch.setitem(FAMILIES, "laptop", {"tiny one": longer})
    with pytest.raises(ValueError, match="retrain=True"):
        sparse_training.trained("laptop", "tiny one")


def test_looks_are_committed_of_the_families_that_are_looked_at(store, monkeypatch):
    monkeypatch.setattr(sparse_training, "LOOKED_AT", ())
    sparse_training.main([])
    assert sparse_training.trained("laptop", "tiny one").looks is None


def test_heads_that_an_architecture_has_not_are_zero_and_unheard():
    made = sparse_training.trained("smoke", "depth 3")
    masks = sparse_models.masks(TINY)
    alone = jax.tree.map(lambda leaf: leaf[0, 0], made.params)
    np.testing.assert_array_equal(np.abs(alone.w_kq).max((2, 3)) > 0, masks[0] > 0)
    batch = sparse_models.draw(TINY, jax.random.key(1), 8, 3)
    loud = jax.tree.map(lambda leaf: np.where(masks[0][:, :, None, None] > 0, leaf, 1e3), alone)
    heard = [sparse_models.predict(TINY, params, batch, masks[0]) for params in (alone, loud)]
    np.testing.assert_array_equal(*heard)


@pytest.mark.parametrize("name", ["depth 3", "softmax"])
def test_predictions_are_those_of_the_trace(name):
    family = FAMILIES["smoke"][name]
    params = sparse_models.init(family, jax.random.key(2))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), params)
    batch = sparse_models.draw(family, jax.random.key(3), 8, 3)
    mask = sparse_models.masks(family)[1]

    def one(prompt):
        trace = sparse_models.forward(family, params, prompt, mask)
        return prompts.normalised(prompt)[1] * predict(trace)

    expected = sparse_models.predict(family, params, batch, mask)
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(batch), expected, atol=1e-12)


def test_a_risk_is_finite_where_a_model_explodes():
    params = jax.tree.map(
        lambda leaf: jnp.full(leaf.shape, 1e30), sparse_models.init(TINY, jax.random.key(0))
    )
    batch = sparse_models.draw(TINY, jax.random.key(4), 4, 8)
    risk = sparse_models.risk(TINY, params, batch, sparse_models.masks(TINY)[2])
    largest = 2 * jnp.abs(batch.y).max(1)
    assert 0 < risk <= ((largest + jnp.abs(batch.y_query)) ** 2).mean()


def test_every_family_of_the_laptop_tier_has_its_weights_in_two_megabytes():
    files = [sparse_training._file(name) for name in FAMILIES["laptop"]]
    for file, family in zip(files, FAMILIES["laptop"].values(), strict=True):
        with np.load(file) as kept:
            assert str(kept["family"]) == repr(family), file.name
            assert kept["loss"].shape[:2] == (len(family.architectures), family.seeds)
    assert sum(file.stat().st_size for file in files[0].parent.iterdir()) < 2 << 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(architectures=((1, 1), (1, 1, 1))), "same depth"),
        (dict(architectures=((0, 1),)), "every layer has a head"),
        (dict(lengths=(6, 8)), "multiple"),
        (dict(task="cubic"), "cubic"),
        (dict(sparsity=9), "sparsity"),
    ],
)
def test_families_that_make_no_sense_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Family(**{"architectures": ((2, 1),)} | change)
