"""Measure how the time of twelve functions grows with one size, beside the expected exponent.

    .venv/bin/python -m benchmarks.growth

A size is doubled three times. The exponent is the slope of log processor time against log size, by
least squares; times are the least of five turns, so that other programs matter little.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from lsa_lab.lab import settings

if __name__ == "__main__":
    settings.configure()

import jax
import numpy as np
import optax

from lsa_lab import estimators, prompts
from lsa_lab.analyses import amplification, clipping, heads
from lsa_lab.models import linear_attention, moments, recurrent, transformer
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch
from lsa_lab.training import Training, fit

KEY = jax.random.key(0)
TASK = LinearTask(16, 8)
TURNS, SHORTEST = 5, 0.05  # seconds of processor time of a turn, at least


class Growth(NamedTuple):
    """A function, the size that grows, its values, and the exponent of the count of operations."""

    name: str
    size: str
    sizes: tuple[int, ...]
    expected: float
    build: Callable[[int], Callable[[], Any]]


def linear_forward(n: int = 1024, d: int = 8, layers: int = 4) -> Callable[[], Any]:
    params = linear_attention.init(KEY, layers, 1, d)
    tokens = prompts.tokens(sample(KEY, LinearTask(n, d)))
    return partial(jax.jit(linear_attention.forward), params, tokens)


def softmax_forward(n: int) -> Callable[[], Any]:
    config = transformer.Config(9, 2, 4, 16)
    tokens = prompts.tokens(sample(KEY, LinearTask(n, 8)))
    run = jax.jit(transformer.forward, static_argnums=2)
    return partial(run, transformer.init(KEY, config), tokens, config)


def recurrent_forward(kind: str, n: int) -> Callable[[], Any]:
    config = recurrent.Config(kind, 17, layout="bound")
    tokens = prompts.bound_tokens(sample(KEY, LinearTask(n, 8)))
    run = jax.jit(recurrent.forward, static_argnums=2)
    return partial(run, recurrent.init(KEY, config), tokens, config)


def layer_maps(d: int) -> Callable[[], Any]:
    moment = prompts.second_moment(sample(KEY, LinearTask(2 * d, d)))
    return partial(jax.jit(moments.layer_maps), linear_attention.init(KEY, 4, 1, d), moment)


def flow(n: int) -> Callable[[], Any]:
    run = jax.jit(partial(amplification.demonstration_flow, linear_attention.forward))
    return partial(run, linear_attention.init(KEY, 3, 1, 8), sample(KEY, LinearTask(n, 8)))


def ridge_of_prefixes(n: int) -> Callable[[], Any]:
    return partial(jax.jit(estimators.recursive_ridge), sample(KEY, LinearTask(n, 8)), 0.1)


def sparse_bayes(d: int) -> Callable[[], Any]:
    rule = jax.jit(partial(estimators.sparse_posterior_mean, sparsity=2))
    prompt = sample(KEY, LinearTask(16, d))
    return lambda: rule(prompt, signal_var=1.0, noise_var=0.1)


def matching(m: int) -> Callable[[], Any]:
    gradients = np.random.default_rng(0).normal(size=(m, 64))
    return lambda: match(gradients, 16, max_swaps=0)


def importance(num_heads: int) -> Callable[[], Any]:
    config = transformer.Config(9, 2, num_heads, 8)
    params, batch = transformer.init(KEY, config), sample_batch(KEY, LinearTask(16, 8), 64)

    def loss(head_mask):
        def predict(prompt):
            return transformer.predict(params, prompts.tokens(prompt), config, head_mask)

        return ((jax.vmap(predict)(batch) - batch.y_query) ** 2).mean()

    return lambda: heads.importance(loss, 2, num_heads)


def clipping_curve(runs: int) -> Callable[[], Any]:
    init = partial(linear_attention.init, num_layers=3, num_heads=1, d=8)
    params, batch = jax.vmap(init)(jax.random.split(KEY, runs)), sample_batch(KEY, TASK, 256)

    def risk(params, batch):
        return (moments.predictions(params, batch) - batch.y_query) ** 2

    return lambda: clipping.curve(
        risk, params, batch, modules=("attention",), rates=(0.0, 0.5, 0.9)
    )


def train(runs: int) -> Callable[[], Any]:
    def loss(params, batch):
        return ((moments.predictions(params, batch) - batch.y_query) ** 2).mean()

    training = Training(loss, partial(sample_batch, task=TASK, size=256), optax.adam(1e-3), 20)
    params = jax.vmap(partial(linear_attention.init, num_layers=2, num_heads=1, d=8))(
        jax.random.split(KEY, runs)
    )
    return lambda: fit(training, params, jax.random.split(KEY, runs))


LONG, WIDE = (1024, 2048, 4096, 8192), (32, 64, 128, 256)
FUNCTIONS = (
    Growth("linear_attention.forward", "n", tuple(16 * n for n in LONG), 1, linear_forward),
    Growth("linear_attention.forward", "L", (8, 16, 32, 64), 1, lambda L: linear_forward(layers=L)),
    Growth("transformer.forward", "n", tuple(n // 4 for n in LONG), 2, softmax_forward),
    Growth("recurrent.forward, delta", "n", LONG, 1, partial(recurrent_forward, "delta")),
    Growth("recurrent.forward, mesa", "n", LONG, 1, partial(recurrent_forward, "mesa")),
    Growth("moments.layer_maps", "d", tuple(2 * d for d in WIDE), 3, layer_maps),
    Growth("demonstration_flow", "n", LONG, 1, flow),
    Growth("recursive_ridge", "n", LONG, 1, ridge_of_prefixes),
    Growth("sparse_posterior_mean", "d", (24, 48, 96, 192), 2, sparse_bayes),
    Growth("gradient_matching.match", "m", tuple(8 * m for m in LONG), 1, matching),
    Growth("heads.importance", "H", (8, 16, 32, 64), 2, importance),
    Growth("clipping.curve", "R", (4, 8, 16, 32), 1, clipping_curve),
    Growth("training.fit", "R", (8, 16, 32, 64), 1, train),
)


def time_call(call: Callable[[], Any]) -> float:
    """Return the least processor seconds of a call over turns of ``SHORTEST`` or more: the clock
    lags by milliseconds while another thread computes."""
    jax.block_until_ready(call())
    least, count = float("inf"), 1
    for _ in range(TURNS):
        spent = 0.0
        while spent < SHORTEST:
            start = time.process_time()
            for _ in range(count):
                result = call()
            jax.block_until_ready(result)
            spent = time.process_time() - start
            count = count if spent >= SHORTEST else 2 * count
        least = min(least, spent / count)
    return least


def main() -> None:
    print("| function | grows | sizes | ms | exponent | expected |\n|" + " --- |" * 6)
    for name, size, sizes, expected, build in FUNCTIONS:
        times = np.array([time_call(build(value)) for value in sizes])
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        shown = " ".join(f"{1e3 * t:.3g}" for t in times)
        ends = f"{sizes[0]} to {sizes[-1]}"
        print(f"| `{name}` | {size} | {ends} | {shown} | {exponent:.2f} | {expected} |", flush=True)


if __name__ == "__main__":
    main()
