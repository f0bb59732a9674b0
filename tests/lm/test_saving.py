"""Decoders are saved as folders that are loaded again."""

from pathlib import Path

import jax
import numpy as np
import pytest

from lsa_lab import lm
from lsa_lab.lm import tokens

FIXTURES = Path(__file__).parent / "fixtures"
LLAMAS = ("llama", "llama_tied", "qwen2", "qwen3")


@pytest.mark.parametrize("name", LLAMAS)
def test_what_is_saved_is_loaded_again(name, tmp_path):
    config, params, _ = lm.load(FIXTURES / name)
    lm.save(
        tmp_path / name,
        lm.Decoder(config, params, tokens.make_word_tokenizer(["a", "film"])),
    )
    again = lm.load(tmp_path / name)
    assert again.config == config
    for leaf, other in zip(*map(jax.tree.leaves, (params, again.params)), strict=True):
        np.testing.assert_allclose(leaf, other, rtol=3e-7)
    assert again.tokenizer.encode("a bad film") == [1, 0, 2]


def test_what_no_such_family_computes_is_not_saved(tmp_path):
    config, params, _ = lm.load(FIXTURES / "gpt2")
    with pytest.raises(ValueError, match="no Llama, Qwen2 or Qwen3"):
        lm.save(tmp_path / "own", lm.Decoder(config, params, None))
    assert not (tmp_path / "own").exists()
