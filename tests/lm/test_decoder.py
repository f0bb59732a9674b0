"""The decoder: numbers of transformers, heads, cached streams, flows and learnt prefixes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_decoders import NAMES, load, load_expected

from lsa_lab.lm import cached_stream, decoder, flow, prefix

IDS = load_expected("llama")["ids"]  # [7]
CONFIG, PARAMS, _ = load("llama")
STREAM = jnp.asarray(load_expected("llama")["stream"][0])
OPEN = np.ones((CONFIG.num_layers, CONFIG.num_heads))
MARGIN = flow.margin(PARAMS, CONFIG, 7, 2)


@jax.jit
def outputs(params, ids, config, head_mask=None):
    walk = decoder.forward(params, decoder.embed(params, ids, config), config, head_mask)
    return walk.stream, walk.heads, decoder.logits(params, walk.stream, config)


def error(name, params, config):
    """The greatest difference from transformers, relative to the greatest entry."""
    expected = load_expected(name)
    stream, _, logits = outputs(params, expected["ids"], config)
    pairs = ((stream, expected["stream"]), (logits[-1], expected["logits"]))
    return max(abs(np.asarray(a) - b).max() / abs(b).max() for a, b in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_stream_and_logits_are_those_of_transformers_and_every_leaf_matters(name):
    config, params, tokenizer = load(name)
    assert error(name, params, config) < 1e-13
    assert tokenizer is None
    for leaf, value in vars(params).items():
        # Without rotations, a bias of the keys adds as much to every score of a token.
        if value is not None and (name, leaf) != ("gpt2", "b_k"):
            without = np.full(value.shape, float(leaf.endswith("_scale")))
            assert error(name, params.replace(**{leaf: without}), config) > 1e-3, leaf


def test_the_stream_grows_by_what_each_open_head_writes():
    silent = PARAMS.replace(mlp_out=np.zeros(PARAMS.mlp_out.shape))
    stream, heads, _ = outputs(silent, IDS, CONFIG, OPEN)
    np.testing.assert_allclose(np.diff(stream, axis=0), heads.sum(1), atol=1e-12)
    mask = np.zeros_like(OPEN)
    mask[0, 2] = 1
    _, alone, _ = outputs(silent, IDS, CONFIG, mask)
    np.testing.assert_allclose(alone[0, 2], heads[0, 2], atol=1e-12)
    assert np.count_nonzero(alone) == alone[0, 2].size


def test_a_traced_word_beyond_the_vocabulary_is_nan():
    config, params, _ = load("gptj")  # its unembedding has a bias

    @jax.jit
    def read(word):
        ids = jnp.array([3, 0]).at[1].set(word)
        stream = decoder.embed(params, ids, config)
        scores = decoder.logits(params, params.embedding[:2], config, ids)
        return stream, scores, flow.margin(params, config, 3, word)(stream[0])

    for word in (-1, config.vocabulary):
        stream, scores, margin = read(word)
        np.testing.assert_array_equal(stream[0], params.embedding[3])
        assert np.isnan(scores).tolist() == [[False, True]] * 2
        assert np.isnan(stream[1]).all()
        assert np.isnan(margin)


@pytest.mark.parametrize(("layer", "num_shared"), [(0, 4), (1, 0)])
def test_an_edit_evaluated_from_a_cached_stream_has_the_bits_of_the_whole_run(layer, num_shared):
    questions = np.stack([IDS[num_shared:], IDS[num_shared:][::-1]])
    before = cached_stream.embed_questions(PARAMS, IDS[:num_shared], questions, CONFIG)
    kept = cached_stream.cache_until(PARAMS, before, CONFIG, (0, layer))
    edit = cached_stream.take_layer(PARAMS, layer)
    edit = edit.replace(mlp_in=0.5 * edit.mlp_in, w_q=-edit.w_q)
    rows = cached_stream.resume(PARAMS, kept[layer], CONFIG, layer, edit)
    changed = {name: np.array(getattr(PARAMS, name)) for name in ("mlp_in", "w_q")}
    for name, leaf in changed.items():
        leaf[layer] = getattr(edit, name)
    whole = PARAMS.replace(**changed)
    np.testing.assert_array_equal(rows, cached_stream.resume(whole, before, CONFIG))
    for question, answer in zip(questions, rows, strict=True):
        stream, _, _ = outputs(whole, np.concatenate([IDS[:num_shared], question]), CONFIG)
        np.testing.assert_allclose(answer, stream[-1, num_shared:], atol=1e-12)
    unedited = cached_stream.resume(PARAMS, kept[layer], CONFIG, layer)
    assert np.abs(rows - unedited).max() > 1e-2


@jax.jit
def read_flow(stream, place):
    return flow.token_flow(PARAMS, stream, CONFIG, MARGIN, layers=(1, 2), place=place)


@jax.jit
def read_margins(stream):  # of the last row before the first layer and after each
    return jax.vmap(MARGIN)(decoder.forward(PARAMS, stream, CONFIG).stream[:, -1])


def test_the_flow_is_the_slope_of_the_margin_through_the_lens():
    scores = outputs(PARAMS, IDS, CONFIG)[-1][:, -1]
    np.testing.assert_allclose(read_margins(STREAM), scores[:, 7] - scores[:, 2], atol=1e-12)
    step = 1e-5 * np.random.default_rng(1).normal(size=STREAM.shape)
    slopes = (read_margins(STREAM + step) - read_margins(STREAM - step))[1:] / 2
    first, last = (np.asarray(read_flow(STREAM, 6)) * step).sum((1, 2))
    np.testing.assert_allclose([first, last], slopes, rtol=1e-6)
    assert abs(first - slopes[1]) > 1e-7  # control: another layer's


def test_the_flow_to_a_prefix_is_that_of_the_whole_prompt():
    streams = jnp.stack([STREAM[4:], STREAM[4:][::-1]])

    def flow_to_prefix(stream, place):
        arguments = PARAMS, STREAM[:4], stream, CONFIG, MARGIN
        return flow.prefix_flow(*arguments, layers=(2,), place=place)

    flows = jax.jit(jax.vmap(flow_to_prefix))(streams, jnp.array([1, 0]))
    for own, stream, place in zip(flows, streams, (5, 4), strict=True):
        expected = read_flow(jnp.concatenate([STREAM[:4], stream]), place)
        np.testing.assert_allclose(own[0], expected[1, :4], atol=1e-12)


def test_a_prefix_of_embeddings_is_a_prefix_of_words():
    example = prefix.Example(IDS[2:], last=jnp.array(3), label=jnp.array(1))
    label_ids = jnp.array([7, 2])
    *_, logits = outputs(PARAMS, IDS, CONFIG)
    loss = jax.jit(prefix.loss)(
        PARAMS.embedding[IDS[:2]], PARAMS, example, config=CONFIG, label_ids=label_ids
    )
    scores = logits[-1, 5, label_ids]  # the last token is padding
    np.testing.assert_allclose(loss, np.logaddexp(*scores) - scores[1], atol=1e-12)
