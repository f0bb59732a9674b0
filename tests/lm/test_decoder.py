"""The decoder: heads, pasts and cached streams; see test_loading for numbers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.lm import cached_stream, decoder, flow
from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import init

LLAMA = Config(
    num_layers=3, num_heads=4, num_groups=2, key_width=4, width=8, mlp_width=6, vocabulary=11,
    context=16, rotary_width=4, tied=True,
)  # fmt: skip
GPT2 = dataclasses.replace(
    LLAMA, num_groups=4, norm="layer", activation="gelu_tanh", gated=False, rotary_width=None,
    learned_positions=True, query_biases=True, write_biases=True, mlp_biases=True,
)  # fmt: skip
NEOX = dataclasses.replace(
    GPT2, activation="gelu", parallel=True, rotary_width=2, learned_positions=False, tied=False,
    unembedding_bias=True,
)  # fmt: skip
CONFIGS = {"llama": LLAMA, "gpt2": GPT2, "neox": NEOX}
IDS = jnp.array([3, 1, 4, 1, 5, 9, 2, 6])


def model(config):
    return jax.jit(init, static_argnums=1)(jax.random.key(0), config), config


@jax.jit
def walk(params, config, ids=IDS, **more):
    return decoder.forward(params, decoder.embed(params, ids, config), config, **more)


def test_the_stream_grows_by_what_each_head_writes():
    params, config = model(LLAMA)
    silent = params.replace(mlp_out=0 * params.mlp_out)
    left = walk(silent, config)
    np.testing.assert_allclose(np.diff(left.stream, axis=0), left.heads.sum(1), atol=1e-12)
    alone = walk(silent, config, head_mask=jnp.zeros((3, 4)).at[0, 2].set(1)).heads
    np.testing.assert_allclose(alone[0, 2], left.heads[0, 2], atol=1e-12)
    assert jnp.count_nonzero(alone) == alone[0, 2].size


@pytest.mark.parametrize("name", CONFIGS)
def test_a_prompt_goes_on_from_its_past(name):
    params, config = model(CONFIGS[name])
    whole = walk(params, config)
    _, past = jax.jit(decoder.run)(params, decoder.embed(params, IDS[:5], config), config)
    rest = decoder.embed(params, IDS[5:], config, start=5)
    forward = jax.jit(decoder.forward)
    later = forward(params, rest, config, past=past)
    np.testing.assert_allclose(later.stream, whole.stream[:, 5:], atol=1e-12)
    wrong = forward(params, decoder.embed(params, IDS[5:], config), config)
    assert jnp.abs(wrong.stream[-1] - whole.stream[-1, 5:]).max() > 1e-2


@pytest.mark.parametrize("word", [-1, LLAMA.vocabulary])
def test_a_traced_word_beyond_the_vocabulary_is_nan(word):
    params, config = model(NEOX)
    ids = jnp.array([3, word])
    stream = jax.jit(decoder.embed)(params, ids, config)
    np.testing.assert_array_equal(stream[0], params.embedding[3])
    assert jnp.isnan(stream[1]).all()
    scores = jax.jit(decoder.logits)(params, params.embedding[:2], config, ids)
    assert jnp.isnan(scores).tolist() == [[False, True]] * 2
    assert jnp.isnan(jax.jit(lambda word: flow.margin(params, config, 3, word)(stream[0]))(word))


def edited_layer(params, layer):
    own = cached_stream.take_layer(params, layer)
    return own.replace(mlp_in=0.5 * own.mlp_in, w_q=-own.w_q)


@pytest.mark.parametrize(("layer", "num_shared"), [(0, 4), (2, 0)])
def test_an_edit_evaluated_from_a_cached_stream_has_the_bits_of_the_whole_run(layer, num_shared):
    params, config = model(LLAMA)
    questions = jnp.stack([IDS[4:], IDS[:4]])
    before = cached_stream.embed_questions(params, IDS[:num_shared], questions, config)
    kept = cached_stream.cache_until(params, before, config, (0, layer))
    edit = edited_layer(params, layer)
    rows = cached_stream.resume(params, kept[layer], config, layer, edit)
    changed = {name: leaf for name, leaf in vars(edit).items() if leaf is not None}
    whole = params.replace(
        **{name: getattr(params, name).at[layer].set(leaf) for name, leaf in changed.items()}
    )
    np.testing.assert_array_equal(rows, cached_stream.resume(whole, before, config))
    for question, answer in zip(questions, rows, strict=True):
        ids = jnp.concatenate([IDS[:num_shared], question])
        alone = walk(whole, config, ids).stream[-1, num_shared:]
        np.testing.assert_allclose(answer, alone, atol=1e-12)
    assert jnp.abs(rows - cached_stream.resume(params, kept[layer], config, layer)).max() > 1e-2
