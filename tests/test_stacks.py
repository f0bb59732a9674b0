"""Trained weights are kept for other experiments, and are nobody else's weights."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.models import stacks

SMALL = stacks.Stack("linear", d=2, n=4, depth=2, steps=4, batch=4, learning_rate=0.01)


def weights(run):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.params)])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))


def test_the_second_who_asks_gets_the_same_weights_untrained(tmp_path):
    first = stacks.trained(SMALL, runs=2, seed=0, label="test")
    (kept,) = (tmp_path / "trained").iterdir()
    before = kept.stat().st_mtime_ns
    again = stacks.trained(SMALL, runs=2, seed=0, label="another experiment")
    assert kept.stat().st_mtime_ns == before
    np.testing.assert_array_equal(weights(first), weights(again))


def test_another_seed_stack_or_code_has_other_weights(tmp_path, monkeypatch):
    base = weights(stacks.trained(SMALL, runs=2, seed=0, label="test"))
    longer = dataclasses.replace(SMALL, learning_rate=0.02)
    assert not np.array_equal(base, weights(stacks.trained(SMALL, runs=2, seed=1, label="test")))
    assert not np.array_equal(base, weights(stacks.trained(longer, runs=2, seed=0, label="test")))
    count = len(list((tmp_path / "trained").iterdir()))
    monkeypatch.setattr(stacks, "_code", lambda: "edited")
    stacks.trained(SMALL, runs=2, seed=0, label="test")
    assert len(list((tmp_path / "trained").iterdir())) == count + 1


def test_merged_weights_refuse_what_they_cannot_have():
    with pytest.raises(ValueError, match="linear heads"):
        dataclasses.replace(SMALL, norm=True)


def test_both_kernels_of_factored_heads_train_with_any_mask():
    for model in ("softmax", "linear heads"):
        stack = dataclasses.replace(SMALL, model=model, keys="causal", heads=2)
        assert np.isfinite(weights(stacks.trained(stack, runs=1, seed=0, label="test"))).all()
