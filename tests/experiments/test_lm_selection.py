"""Prompts of one width, rules that score demonstrations, and readings that turn no pair."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import decoders, singles
from experiments.language.lm_flow import flow_sizes, measures
from experiments.language.lm_flow.config import TIERS
from experiments.language.lm_grads import rules
from lsa_lab.lm import decoder

CONFIG = TIERS["smoke"]
MODEL = decoders.decoder(CONFIG)
WRITER, TEXTS = singles.texts(MODEL, CONFIG, dict(CONFIG.tasks)["invented"])


def test_prompts_of_one_width_say_the_same():
    short, long = sorted(range(20), key=lambda i: len(TEXTS.texts[i].split()))[::19]
    for row in (short, long):
        ids, ((begin, end),) = WRITER.demonstrations(TEXTS.take([row]))
        assert len(ids) == end == 1 + WRITER.width + 1
        word = WRITER.template.labels[TEXTS.labels[row]]
        said = MODEL.tokenizer.decode(ids[begin:end])
        assert said.split() == f"Review: {TEXTS.texts[row]} Sentiment: {word}".split()
        assert set(ids[:begin].tolist()) == {WRITER.fill}


def test_the_worth_of_a_demonstration_is_that_of_the_whole_prompt():
    pool, queries = TEXTS.take(range(3)), TEXTS.take(range(3, 5))
    of = singles.measure(MODEL, WRITER, pool, queries, layer=2)
    prefix, _ = WRITER.demonstrations(pool.take([1]))
    ids, last = (part[1] for part in WRITER.questions(queries))
    whole = jnp.concatenate([prefix, ids[: last + 1]])
    stream = decoder.embed(MODEL.params, whole, MODEL.config)
    row = decoder.forward(MODEL.params, stream, MODEL.config).stream[-1, -1]
    scores = decoder.logits(MODEL.params, row, MODEL.config, jnp.asarray(WRITER.label_ids))
    np.testing.assert_allclose(of.after[1, 1], jax.nn.log_softmax(scores), atol=1e-4)


def test_every_demonstration_stands_at_every_place():
    at = measures.places(4)
    assert (np.sort(at, axis=0) == np.arange(4)[:, None]).all()
    for place in at:
        assert (np.argsort(place)[place] == np.arange(4)).all()


def test_eq_2_is_the_derivative_of_linear_attention():
    of_layer = jax.tree.map(lambda leaf: leaf.astype(float), decoder_layer())
    rng = np.random.default_rng(0)
    means, ends = rng.standard_normal((3, 16)), rng.standard_normal((2, 16))

    def written(d, q):  # what all heads write to the query
        w_k, w_v = (jnp.repeat(leaf, 2, axis=0) for leaf in (of_layer.w_k, of_layer.w_v))
        scores = jnp.einsum("hke,e,hkf,f->h", w_k, d, of_layer.w_q, q)
        return jnp.einsum("h,hdk,hke,e->d", scores, of_layer.w_o, w_v, d)

    sizes = rules._norms(of_layer, jnp.asarray(means), jnp.asarray(ends))
    jacobian = jax.jacfwd(written)(means[2], ends[1])
    np.testing.assert_allclose(sizes[2, 1], jnp.linalg.norm(jacobian), rtol=1e-10)


def decoder_layer():
    from lsa_lab.lm import halts

    return halts.layer_of(MODEL.params, 3)


def test_bm25_counts_rare_words_and_holds_long_texts_back():
    texts = ("A film", "a dull film", "a a a a dull dull film film warm warm")
    scores = rules.bm25(texts, ("dull", "a", "warm slow"))
    assert scores[1, 0] > scores[0, 0] == 0
    assert scores[2, 2] > scores[:, 1].max() > 0  # every text holds "a", in small letters too
    length, mean = 3, 5
    damping = 1.5 * (1 - 0.75 + 0.75 * length / mean)
    expected = np.log1p(1.5 / 2.5) * 2.5 / (1 + damping)
    np.testing.assert_allclose(scores[1, 0], expected)


def test_leads_are_not_turned_by_the_flows_that_they_judge():
    noise = np.random.default_rng(0).standard_normal((400, 3, 2, 2))
    assert abs(flow_sizes.leads(noise)[:, -1].mean()) < 0.1
    own = np.abs(flow_sizes.ratios(noise))  # control: turned by itself, noise alone falls back
    turned = flow_sizes.ratios(noise) * np.sign(flow_sizes.ratios(noise)[..., :1])
    assert (turned[..., 1] - turned[..., 0]).mean() < -0.5 * own[..., 0].mean()
    amplified = np.concatenate([noise[:, :, :1].repeat(2, axis=2)[..., :1]] * 2, axis=-1)
    amplified = amplified * np.array([1, 3])
    assert flow_sizes.leads(amplified)[:, -1].mean() > 1
    np.testing.assert_allclose(flow_sizes.disparities(amplified)[:, -1], 3)
