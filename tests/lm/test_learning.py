"""Decoders of one's own: their first weights, their loss, and the folder that they are kept in."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import lm
from lsa_lab.lm import decoder, learning, tokens, weights

FIXTURES = Path(__file__).parent / "fixtures"
LLAMAS = ("llama", "llama_tied", "qwen2", "qwen3")
KEY = jax.random.key(0)


@pytest.mark.parametrize("name", ["gpt2", *LLAMAS])
def test_first_weights_have_the_layout_of_those_from_disk(name):
    config, params, _ = lm.load(FIXTURES / name)
    first = jax.eval_shape(lambda key: lm.init(key, config), KEY)
    weights.check_params(first, config)
    assert {leaf.dtype for leaf in jax.tree.leaves((first, params))} == {jnp.dtype("float32")}


def test_first_weights_are_quiet_and_otherwise_those_of_a_random_decoder():
    config = lm.read_config(FIXTURES / "qwen3")
    own, random = lm.init(KEY, config), weights.init(KEY, config, "float32")
    np.testing.assert_array_equal(own.mlp_in, random.mlp_in)
    np.testing.assert_allclose(own.mlp_out * (2 * config.num_layers) ** 0.5, random.mlp_out, 1e-6)
    np.testing.assert_array_equal(own.final_norm_scale, 1)
    np.testing.assert_allclose(own.q_norm_scale, config.key_width**-0.5, 1e-6)


def test_the_loss_is_the_cross_entropy_of_what_counts():
    config, params, _ = lm.load(FIXTURES / "llama", "float64")
    ids = jax.random.randint(KEY, (2, 6), 0, config.vocabulary, jnp.int32)
    counts = np.array([[1, 0, 1, 0, 0, 1], [0, 1, 0, 0, 0, 0]], bool)
    own = learning.loss(params, ids, jnp.asarray(counts), config)
    terms = []
    for row, of_row in zip(ids, counts, strict=True):
        stream = decoder.forward(params, decoder.embed(params, row, config), config).stream[-1]
        scores = np.asarray(decoder.logits(params, stream, config))
        p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        terms += [-np.log(p[t - 1, row[t]]) for t in range(1, 6) if of_row[t]]
    assert len(terms) == 3
    np.testing.assert_allclose(own, np.mean(terms), rtol=1e-12)


@pytest.mark.parametrize("name", LLAMAS)
def test_what_is_saved_is_loaded_again(name, tmp_path):
    config, params, _ = lm.load(FIXTURES / name)
    lm.save(
        tmp_path / name,
        lm.Decoder(config, params, tokens.make_word_tokenizer(["a", "Film"], plain=True)),
    )
    again = lm.load(tmp_path / name)
    assert again.config == config
    for leaf, other in zip(*map(jax.tree.leaves, (params, again.params)), strict=True):
        np.testing.assert_allclose(leaf, other, rtol=3e-7)
    assert again.tokenizer.encode("A, film") == [1, 0, 0]  # words are told in small letters


def test_what_no_such_family_computes_is_not_saved(tmp_path):
    config, params, _ = lm.load(FIXTURES / "gpt2")
    with pytest.raises(ValueError, match="no Llama, Qwen2 or Qwen3"):
        lm.save(tmp_path / "own", lm.Decoder(config, params, None))
    assert not (tmp_path / "own").exists()
