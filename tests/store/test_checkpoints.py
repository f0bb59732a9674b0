"""A checkpoint comes back as it was, or not at all."""

import hashlib

import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.store import checkpoints

FACTS = {"identity": "a", "steps": 3}


def contents():
    return {
        "count": np.int64(7),
        "flags": np.array([True, False]),
        "nested": (jnp.arange(6.0).reshape(2, 3), {"low": jnp.ones(3, jnp.bfloat16)}),
        "empty": np.zeros((0, 2), np.float32),
    }


def saved(tmp_path):
    path = tmp_path / "deep" / "fit.ckpt"
    checkpoints.save(path, contents(), FACTS)
    return path


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    loaded = checkpoints.load(saved(tmp_path), contents(), FACTS)
    assert checkpoints.digest(loaded) == checkpoints.digest(contents())
    assert loaded["nested"][1]["low"].dtype == jnp.bfloat16
    assert loaded["count"].shape == ()


def test_another_fact_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="has steps = 3, and this call has 4"):
        checkpoints.load(saved(tmp_path), contents(), FACTS | {"steps": 4})
    with pytest.raises(ValueError, match="has width = nothing, and this call has 2"):
        checkpoints.load(saved(tmp_path), contents(), FACTS | {"width": 2})


@pytest.mark.parametrize(
    ("leaf", "message"),
    [
        (np.array([True]), r"\['flags'\] = bool \[2\], and this call has bool \[1\]"),
        (np.array([1, 0], np.int8), r"\['flags'\] = bool \[2\], and this call has int8 \[2\]"),
        ({}, r"\['flags'\] = bool \[2\], and this call has nothing"),
    ],
)
def test_another_array_is_refused_by_name(tmp_path, leaf, message):
    with pytest.raises(ValueError, match=message):
        checkpoints.load(saved(tmp_path), contents() | {"flags": leaf}, FACTS)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"facts": 1, "layout": {}}',
        b'{"layout": {"a": 1}}',
    ],
    ids=["empty", "list", "object", "no text", "deep", "facts", "layout"],
)
def test_a_forged_header_is_refused_in_a_sentence(tmp_path, header):
    body = len(header).to_bytes(8, "little") + header
    path = tmp_path / "forged.ckpt"
    path.write_bytes(hashlib.sha256(body).digest() + body)
    with pytest.raises(ValueError, match=r"is no checkpoint of lsa_lab: delete it"):
        checkpoints.load(path, contents(), FACTS)


def test_the_digest_knows_names_shapes_and_types():
    trees = [
        {"a": np.zeros(4)},
        {"b": np.zeros(4)},
        {"a": np.zeros((2, 2))},
        {"a": np.zeros(8, np.float32)},
        {"a": np.ones(4)},
    ]
    assert len({checkpoints.digest(tree) for tree in trees}) == len(trees)


def test_the_order_of_bytes_is_not_of_the_numbers(tmp_path):
    numbers = np.array([1.0, 2.0])
    swapped = {"a": numbers.astype(">f8")}
    checkpoints.save(tmp_path / "swapped.ckpt", swapped, {})
    kept = checkpoints.load(tmp_path / "swapped.ckpt", {"a": numbers}, {})["a"]
    np.testing.assert_array_equal(kept, numbers)
    assert checkpoints.digest(swapped) == checkpoints.digest({"a": numbers})


@pytest.mark.parametrize("leaf", [np.array(["a"]), np.array([None]), np.array(["2020"], "M8[Y]")])
def test_what_is_no_number_is_not_saved(tmp_path, leaf):
    with pytest.raises(ValueError, match=r"\['a'\] is .*: a checkpoint keeps numbers"):
        checkpoints.save(tmp_path / "text.ckpt", {"a": leaf}, {})
