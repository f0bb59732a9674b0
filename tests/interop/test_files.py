"""Safetensors files of ours: the same bits come back, with what was said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
