"""A decoder of SmolLM2-135M's shape: walks, questions, a gradient; edits, decompositions, loading.

The weights are SmolLM2's where it has been fetched, else random ones of the same speed.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.loops import once
from benchmarks.timing import Form
from lsa_lab import lm
from lsa_lab.analyses import clipping
from lsa_lab.lm import cached_stream, decoder, flow, prefix, sources, text, weights
from lsa_lab.lm.config import Config
from lsa_lab.models.matrices import matrices

SMOLLM2 = Config(
    *(30, 9, 3, 64, 576, 1536, 49152, 8192),
    norm_epsilon=1e-5,
    rotary_width=64,
    rotary_base=1e5,
    tied=True,
)
BEFORE, PARTS, AT_ONCE, QUESTION = 180, 4, 25, 32  # 100 questions of 32 tokens after 4 shots
EXAMPLES, PREFIX = 8, 4  # of the gradients by a learnt prefix
LISTENED = 191  # tokens by whose embeddings the margin is differentiated
MODULES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_gate", "mlp_out")


@cache
def model() -> tuple[Any, Config]:
    try:
        path = sources.find("smollm2")
    except FileNotFoundError:
        return weights.init(jax.random.key(0), SMOLLM2, jnp.float32), SMOLLM2
    config, params, _ = lm.load(path)
    return jax.tree.map(jnp.asarray, params), config


def every_logit(params: Any, config: Config) -> Callable:
    """ids [B, T] -> the logits after every token, [B, T, V]."""

    @jax.jit
    def run(params, ids):
        def stream(ids):
            return decoder.forward(params, decoder.embed(params, ids, config), config).stream[-1]

        return decoder.logits(params, jax.vmap(stream)(ids), config)

    return partial(run, params)


def ours(shapes: list) -> Form:
    """Logits of ``shapes`` [B, T]; 100 questions after the same demonstrations; the margin's
    gradient by tokens' embeddings."""
    params, config = model()
    walks = [partial(every_logit(params, config), draw(shape)) for shape in shapes]
    stream = decoder.embed(params, draw((LISTENED,)), config)
    margin = flow.margin(params, config, 0, 1)
    gradient = partial(flow.token_flow, params, stream, config, margin, layers=(config.num_layers,))
    return once(*walks, partial(text.scores, params, config, ask(BEFORE, QUESTION)), gradient)


def ours_reused() -> Form:
    """100 questions after demonstrations that run once for all, and each with its own copy."""
    params, config = model()
    asked = ask(BEFORE, QUESTION), ask(0, BEFORE + QUESTION)
    return once(*(partial(text.scores, params, config, each) for each in asked))


def ask(before: int, question: int) -> text.Questions:
    """Return 100 questions of random tokens after the same ``before`` tokens."""
    ids = draw((PARTS, AT_ONCE, question))
    last, places = np.full(AT_ONCE, question - 1), np.arange(PARTS * AT_ONCE).reshape(PARTS, -1)
    buckets = tuple(
        text.Bucket(np.asarray(part), last, place) for part, place in zip(ids, places, strict=True)
    )
    labels = np.arange(places.size) % 2
    prefix, spans = np.asarray(draw((before,))), np.zeros((0, 2), int)
    return text.Questions(prefix, spans, buckets, labels, labels[:2])


def ours_alone() -> Form:
    """The questions with the last layer, one at two thirds or the first edited, from streams
    cached before it; losses' gradients by a learnt prefix, the SVD of every matrix."""
    params, config = model()
    ids = draw((PARTS, AT_ONCE, QUESTION))
    start = cached_stream.embed_questions(
        params, draw((BEFORE,)), ids.reshape(-1, QUESTION), config
    )
    edited = (config.num_layers - 1, 2 * config.num_layers // 3, 0)
    kept, edits = cached_stream.cache_until(params, start, config, edited), []
    for layer in edited:
        edit = cached_stream.take_layer(params, layer)
        edit = edit.replace(mlp_in=clipping.truncate(edit.mlp_in, 0.9))
        edits.append(partial(cached_stream.resume, params, kept[layer], config, layer, edit))
    last = jnp.full(EXAMPLES, QUESTION - 1)
    pool = prefix.Example(draw((EXAMPLES, QUESTION)), last, jnp.arange(EXAMPLES) % 2)
    learnt = prefix.init(jax.random.key(0), params, PREFIX)
    loss = partial(prefix.loss, config=config, label_ids=jnp.arange(2))
    each = jax.jit(jax.vmap(jax.grad(loss), (None, None, 0)))
    decompose = partial(clipping.svd_terms, matrices(params, MODULES))
    return once(*edits, partial(each, learnt, params, pool), decompose)


def ours_loaded() -> Form:
    """A GGUF dequantised, and read again from its copy in the cache."""
    path, empty = sources.find("smollm2"), emptied_folder()

    def load(anew):
        os.environ["LSA_LAB_CACHE"] = empty(anew)
        return lm.load(path).params

    return once(partial(load, True), partial(load, False))


def emptied_folder() -> Callable[[bool], str]:
    """A folder of this process, emptied where its caller begins anew."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def empty(anew):
        if anew:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        return str(folder)

    return empty


def draw(shape):
    return jax.random.randint(jax.random.key(sum(shape)), shape, 0, SMOLLM2.vocabulary)
