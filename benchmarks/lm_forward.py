"""What a decoder of SmolLM2-135M's shape costs: walks, questions, edits, gradients, loading.

transformers on torch, in a process of its own, takes turns with ours where it does the same; a
ratio is that of two turns beside each other, so that whoever else uses the machine slows both. The
weights are SmolLM2's where it has been fetched and random ones elsewhere: the speed is the same.

    python -m benchmarks.lm_forward [PYTHON]

PYTHON has the extra ``lm-reference``; by default it is this one, and without the extra ours is
timed alone.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from lsa_lab.harness.run import process

process.configure()

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.analyses import clipping
from lsa_lab.lm import decoder, flow, halts, prefix, sources, text, weights
from lsa_lab.lm.config import Config

SMOLLM2 = Config(
    *(30, 9, 3, 64, 576, 1536, 49152, 8192),
    norm_epsilon=1e-5,
    rotary_width=64,
    rotary_base=1e5,
    tied=True,
)
THEIRS = dict(
    hidden_size=576,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    intermediate_size=1536,
    vocab_size=49152,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)
BEFORE, PARTS, AT_ONCE, QUESTION = 180, 4, 25, 32  # 100 questions of 32 tokens after 4 shots
EXAMPLES, PREFIX = 8, 4  # of the gradients by a learnt prefix


class Reference:
    """The other process; ``absent`` says why there is none."""

    def __init__(self, python: str):
        words = [python, "-m", "benchmarks.lm_reference", json.dumps(THEIRS)]
        ours = ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {key: value for key, value in os.environ.items() if key not in ours}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=environment)
        said = json.loads(self.process.stdout.readline())
        self.absent = said.get("absent")
        print(self.absent or f"{said['versions']}, {said['threads']} threads", flush=True)

    def turn(self, *words) -> tuple[float, float]:
        """Seconds on the clock and of the processor."""
        print(json.dumps(words), file=self.process.stdin, flush=True)
        return tuple(json.loads(self.process.stdout.readline()))


def turn(function) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    jax.block_until_ready(function())
    return time.perf_counter() - began, time.process_time() - used


def row(name, function, reference=None, words=(), turns=5, per_second=None):
    """A line: medians and spreads of our turns, and of theirs with the ratio of two turns."""
    has_words = reference is not None and not reference.absent and words
    turn(function)  # compiled
    if has_words:
        reference.turn(*words)
    pairs = [(turn(function), reference.turn(*words) if has_words else None) for _ in range(turns)]
    ours = np.array([pair[0] for pair in pairs])
    line = f"{name:44} {_seconds(ours)}"
    if per_second:
        line += f"; {per_second[0] / np.median(ours[:, 0]):6.1f} {per_second[1]} a second"
    if has_words:
        theirs = np.array([pair[1] for pair in pairs])
        ratio = theirs / ours
        line += f"\n{'    transformers':44} {_seconds(theirs)}"
        if per_second:
            line += f"; {per_second[0] / np.median(theirs[:, 0]):6.1f} {per_second[1]} a second"
        line += f"\n{'    theirs over ours':44} {_spread(ratio[:, 0])}, {_spread(ratio[:, 1])}"
    print(line, flush=True)


def once(name, function):
    print(f"{name:44} {_seconds(np.array([turn(function)]))}", flush=True)


def _seconds(pairs):
    return f"{_spread(pairs[:, 0])} s, processor {_spread(pairs[:, 1])} s"


def _spread(values):
    return f"{np.median(values):6.2f} ({values.min():.2f} to {values.max():.2f})"


def forwards(params, config, reference):
    """The logits after every token, of one prompt and of several."""

    @jax.jit
    def run(params, ids):
        def stream(ids):
            return decoder.forward(params, decoder.embed(params, ids, config), config).stream[-1]

        return decoder.logits(params, jax.vmap(stream)(ids), config)

    for shape in ((1, 303), (4, 256)):
        ids = draw(shape, config)
        name = f"forward, {shape[0]} x {shape[1]} tokens"
        words = ("forward", *shape)
        row(name, partial(run, params, ids), reference, words, per_second=(ids.size, "tokens"))


def questions(params, config, reference):
    """100 questions after the same demonstrations, and again from halts before an edited layer."""
    ids = draw((PARTS, AT_ONCE, QUESTION), config)
    last = np.full(AT_ONCE, QUESTION - 1)
    places = np.arange(PARTS * AT_ONCE).reshape(PARTS, AT_ONCE)
    buckets = tuple(
        text.Bucket(np.asarray(part), last, place) for part, place in zip(ids, places, strict=True)
    )
    before = draw((BEFORE,), config)
    labels = np.arange(places.size) % 2
    asked = text.Questions(np.asarray(before), np.zeros((0, 2), int), buckets, labels, labels[:2])
    row(
        "100 questions of 4 shots",
        partial(text.scores, params, config, asked),
        reference,
        ("questions", BEFORE, PARTS, AT_ONCE, QUESTION),
        turns=3,
    )
    start = halts.start(params, before, ids.reshape(-1, QUESTION), config)
    kept = halts.keep(params, start, config, (29, 20, 0))
    for layer in (29, 20, 0):
        edit = halts.layer_of(params, layer)
        edit = edit.replace(mlp_in=clipping.truncate(edit.mlp_in, 0.9))
        finish = partial(halts.finish, params, kept[layer], config, layer, edit)
        row(f"the same with layer {layer} edited", finish, turns=3)


def gradients(params, config, reference):
    """The margin's by 191 tokens' embeddings; losses' by a learnt prefix, each example's own."""
    stream = decoder.embed(params, draw((191,), config), config)
    margin = flow.margin(params, config, 0, 1)
    gradient = partial(flow.token_flow, params, stream, config, margin, layers=(30,))
    row("gradient of the margin, 191 tokens", gradient, reference, ("gradient", 191))
    ids = draw((EXAMPLES, QUESTION), config)
    last = jnp.full(EXAMPLES, QUESTION - 1)
    pool = prefix.Example(ids, last, jnp.arange(EXAMPLES) % 2)
    learnt = prefix.init(jax.random.key(0), params, PREFIX)
    loss = partial(prefix.loss, config=config, label_ids=jnp.arange(2))
    each = jax.jit(jax.vmap(jax.grad(loss), (None, None, 0)))
    name = f"gradients by a prefix, {EXAMPLES} x {QUESTION} tokens"
    row(name, partial(each, learnt, params, pool), turns=3, per_second=(EXAMPLES, "examples"))


def decompositions(params, config):
    """Every matrix of every layer, the heads of one stacked; and again from the disk."""
    modules = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_gate", "mlp_out")
    with tempfile.TemporaryDirectory() as folder:

        def every():
            factors = clipping.Factors(folder, params, modules)
            for name in factors:
                for layer in range(config.num_layers):
                    factors.terms(name, layer)

        once(f"{config.num_layers * len(modules)} SVDs", every)
        once("their factors again, from the disk", every)


def time_loading(path):
    """A GGUF dequantised, then mapped from the cache as it was left there."""
    with tempfile.TemporaryDirectory() as folder, cache_at(folder):
        once("loading the GGUF, the first time", lambda: lm.load(path).params)
        row("and again", lambda: lm.load(path).params)


@contextlib.contextmanager
def cache_at(folder):
    before = os.environ.get("LSA_LAB_CACHE")
    os.environ["LSA_LAB_CACHE"] = folder
    yield
    os.environ.pop("LSA_LAB_CACHE")
    os.environ |= {"LSA_LAB_CACHE": before} if before else {}


def draw(shape, config):
    return jax.random.randint(jax.random.key(sum(shape)), shape, 0, config.vocabulary)


if __name__ == "__main__":
    reference = Reference(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
    try:
        path = sources.path("smollm2")
        config, params, _ = lm.load(path)
    except FileNotFoundError as error:
        print(f"random weights: {error}", flush=True)
        path, config = None, SMOLLM2
        params = weights.init(jax.random.key(0), config, "float32")
    params = jax.tree.map(jnp.asarray, params)
    print(f"{os.getloadavg()[0]:.1f} processes compete for {process.cores()} cores", flush=True)
    forwards(params, config, reference)
    questions(params, config, reference)
    gradients(params, config, reference)
    decompositions(params, config)
    if path is not None:
        time_loading(path)
