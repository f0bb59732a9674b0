"""`lm_flow`: prompts of one width, and what a demonstration is worth."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import decoders
from experiments.language.lm_flow import compute, measures
from experiments.language.lm_flow.config import TIERS
from lsa_lab.lm import decoder

TINY = TIERS["smoke"]  # two runs, two demonstrations, two queries, two layers
MODEL = decoders.decoder(TINY)


@functools.cache
def run_of(part="grads"):
    """A pool of 4, two queries, two shots."""
    own = getattr(TINY, part) if part else TINY
    return compute.run_maker(MODEL, TINY, own)(0, 0)


def test_prompts_of_one_width_say_the_same():
    writer, texts = run_of("").writer, run_of("").sets.fresh
    short, long = sorted(range(8), key=lambda i: len(texts.texts[i].split()))[::7]
    for row in (short, long):
        ids, ((begin, end),) = writer.demonstrations(texts.take([row]))
        assert len(ids) == end == 1 + writer.width + 1
        word = writer.template.labels[texts.labels[row]]
        said = MODEL.tokenizer.decode(ids[begin:end])
        assert said.split() == f"Review: {texts.texts[row]} Sentiment: {word}".split()
        assert set(ids[:begin].tolist()) == {writer.fill}


def test_the_worth_of_a_demonstration_is_that_of_the_whole_prompt():
    run = run_of()
    prefix, _ = run.writer.demonstrations(run.sets.others.take([1]))
    nothing, _ = run.writer.demonstrations(run.sets.others.take([]))
    ids, last = (part[1] for part in run.writer.questions(run.sets.fresh))

    def log_p(prefix):
        stream = decoder.embed(
            MODEL.params, jnp.concatenate([prefix, ids[: last + 1]]), MODEL.config
        )
        row = decoder.forward(MODEL.params, stream, MODEL.config).stream[-1, -1]
        words = jnp.asarray(run.writer.label_ids)
        return jax.nn.log_softmax(decoder.logits(MODEL.params, row, MODEL.config, words))

    of, added = measures.singles(run), log_p(prefix) - log_p(nothing)
    np.testing.assert_allclose(of.worth[1, 1], added[run.sets.fresh.labels[1]], atol=1e-4)
    np.testing.assert_allclose(of.moved[1, 1], added[1] - added[0], atol=1e-4)
