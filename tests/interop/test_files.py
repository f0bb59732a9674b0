"""Safetensors files of ours: the same bits come back, with what was said of them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from lsa_lab.interop import from_safetensors, to_safetensors
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.transformer import Config

MERGED = linear_attention.init(jax.random.key(0), 2, 3, 2)
EVERYTHING = Config(
    3, 2, (2, 1), 2, width=5, norm=True, mlp_width=4, biases=True, final_norm=True, num_positions=9
)


def same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)
    assert [leaf.dtype for leaf in jax.tree.leaves(first)] == [
        leaf.dtype for leaf in jax.tree.leaves(second)
    ]


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32, jnp.bfloat16])
def test_merged_weights_come_back_in_their_dtype(tmp_path, dtype):
    params = jax.tree.map(lambda leaf: leaf.astype(dtype), MERGED)
    to_safetensors(params, tmp_path / "weights.safetensors", {"task": "n = 20"})
    saved = from_safetensors(tmp_path / "weights.safetensors")
    same(saved.params, params)
    assert (saved.config, saved.metadata) == (None, {"task": "n = 20"})


def test_a_transformer_comes_back_with_its_config_and_runs_on_their_axis(tmp_path):
    params = transformer.init(jax.random.key(0), EVERYTHING)
    runs = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), params)
    for index, each in enumerate((params, runs)):
        path = tmp_path / f"{index}.safetensors"
        to_safetensors(each, path, config=EVERYTHING)
        came, config, metadata = from_safetensors(path)
        same(came, each)
        assert (config, metadata) == (EVERYTHING, {})


def test_what_is_not_ours_is_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(TypeError, match=r"params is a dict; expected linear_attention\.Params"):
        to_safetensors({"w_kq": MERGED.w_kq}, path)
    for metadata in ({"n": 3}, {"lsa_lab.config": "{}"}):
        with pytest.raises(ValueError, match="expected text, under another key"):
            to_safetensors(MERGED, path, metadata)
    save_file({"w_kq": np.ones(2), "w_o": np.ones(2)}, path)
    with pytest.raises(
        ValueError, match=r"has w_o too much for .*linear_attention, and lacks w_pv"
    ):
        from_safetensors(path)
    save_file({"w_kq": np.ones(2), "w_pv": np.ones(2)}, path)
    with jax.enable_x64(False), pytest.raises(ValueError, match="w_kq is float64, and jax would"):
        from_safetensors(path)


def test_without_the_package_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"pip install 'lsa-lab\[interop\]'"):
        to_safetensors(MERGED, tmp_path / "weights.safetensors")


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((1, 1, 3, 3), (1, 1, 3, 2)), ((3, 3), (3, 3))])
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, shapes):
    arrays = dict(zip(("w_kq", "w_pv"), map(np.zeros, shapes), strict=True))
    save_file(arrays, tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=r"expected w_kq and w_pv \[L, H, e, e\]"):
        from_safetensors(tmp_path / "w.safetensors")
