"""The language model that a configuration names, and what experiments read from it.

Prompts of one kind have one shape, so that a program is compiled once for all collections.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.language.texts import INVENTED_WORDS
from lsa_lab import lm
from lsa_lab.lab.catalogue import UsageError
from lsa_lab.lm import cached_stream, decoder, flow, sources, tokens, weights
from lsa_lab.lm.config import Config

RANDOM = "random"  # the name of a tiny decoder with random weights, for tests
TOGETHER = 4  # prompts that run side by side
_WORDS = ("Review:", "Sentiment:", "negative", "positive", *INVENTED_WORDS)


def load_model(name: str) -> lm.Decoder:
    """Load a source of ``lsa_lab.lm``, a GGUF file, a folder, or the tiny random decoder."""
    if name == RANDOM:
        return _draw_tiny()
    try:
        return lm.load(sources.find(name) if name in sources.SOURCES else Path(name))
    except FileNotFoundError as error:
        raise UsageError(str(error)) from None


def describe_model(name: str) -> str:  # in captions
    titles = {RANDOM: "a tiny random decoder", "smollm2": "SmolLM2-135M (4 bits)"}
    return titles.get(name, Path(name).stem)


def _draw_tiny() -> lm.Decoder:
    """Draw four layers of width 16 with NumPy, so that nothing is compiled for it."""
    shape = dict(num_layers=4, num_heads=4, num_groups=2, key_width=4, width=16, mlp_width=32)
    config = Config(**shape, vocabulary=1 + len(_WORDS), context=256, rotary_width=4, tied=True)
    rng, leaves = np.random.default_rng(0), {}
    for name, size in weights.shapes(config).items():
        normal = rng.standard_normal(size, np.float32)
        scaled = 1 + 0.1 * normal if name.endswith("_scale") else normal * size[-1] ** -0.5
        leaves[name] = jnp.asarray(scaled, jnp.float32)
    return lm.Decoder(config, decoder.Params(**leaves), tokens.make_word_tokenizer(_WORDS))


draw_untrained = jax.jit(weights.init, static_argnames=("config", "dtype"))


def select_layers(depth: int, places: int) -> tuple[int, ...]:
    """Return ``places`` layers from 1 to the depth, evenly; all of them for 0."""
    return tuple(np.unique(np.linspace(1, depth, places or depth).round().astype(int)).tolist())


class Reading(NamedTuple):
    """What a model answers after prompts, and the gradients of its answers."""

    margin: Array  # [m, B]  the logit of the second label less that of the first
    squares: Array | None  # [m, B, l, P]  |∂ margin after a layer / ∂ token of the prefix|²


@partial(jax.jit, static_argnames=("config", "layers"))
def read_prompts(params, prefixes, questions, words, *, config, layers=()) -> Reading:
    """Read the questions [m, B, W] of each prefix [m, P], and the gradients of some layers."""
    read_margin = flow.margin(params, config, words[1], words[0])

    def read_prefix(row):  # [P], [B, W]
        prefix, asked = row
        begin = decoder.embed(params, prefix, config)
        _, past = decoder.run(params, begin, config)

        def read_question(ids):
            stream = decoder.embed(params, ids, config, start=len(prefix))
            last = decoder.last_stream(params, stream, config, past=past)[-1]
            if not layers:
                return read_margin(last), None
            rows = flow.prefix_flow(params, begin, stream, config, read_margin, layers=layers)
            return read_margin(last), (rows**2).sum(-1)

        return jax.vmap(read_question)(asked)

    return Reading(*jax.lax.map(read_prefix, (prefixes, questions), batch_size=TOGETHER))


@partial(jax.jit, static_argnames=("config", "layer"))
def average_rows(params, ids, *, config, layer):  # [N, W] -> [N, D]
    def average(ids):
        embedded = decoder.embed(params, ids, config)
        return decoder.forward(params, embedded, config).stream[layer].mean(0)

    return jax.lax.map(average, ids, batch_size=TOGETHER)


@partial(jax.jit, static_argnames="config")
def read_margins(params, rows, words, *, config):  # [..., D] -> [...]
    scores = decoder.logits(params, rows, config, words)
    return scores[..., 1] - scores[..., 0]


def cache_streams(model: lm.Decoder, prefix, questions, layers) -> dict:  # [P], [B, W]
    """Return the streams of one prompt before some layers, from which edited models go on."""
    ids = jnp.asarray(prefix), jnp.asarray(questions)
    begin = cached_stream.embed_questions(model.params, *ids, model.config)
    return cached_stream.cache_until(model.params, begin, model.config, layers)


def find_cosines(left, right) -> np.ndarray:  # [m, D], [B, D] -> [m, B]
    """Return cosines of rows, less the mean of the left ones: all rows of a model point one way."""
    units = [np.asarray(rows, float) - np.asarray(left, float).mean(0) for rows in (left, right)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in units]
    return units[0] @ units[1].T
