"""Training by moments: the cost of a step at n = 20 and n = 20 000, and tokens beside moments.

Ratios are taken within one run of this script, on an idle machine:

    python -m benchmarks.moments
"""

import time
from functools import partial

from lsa_lab.harness import process

process.configure()

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample, sample_moments

BATCH, STEPS, REPEATS = 128, 200, 7


def task_of(n, d):
    return LinearTask(n, d, noise_std=0.1, dtype=jnp.float32)


def loss_of_moments(params, key, n, d):
    draw = jax.vmap(partial(sample_moments, task=task_of(n, d)), out_axes=-1)
    second_moments, x_queries, targets = draw(jax.random.split(key, BATCH))
    predicted = moments.predictions_from_moments(params, second_moments, x_queries)
    return jnp.mean((predicted - targets) ** 2)


def loss_of_tokens(params, key, n, d):
    batch = jax.vmap(partial(sample, task=task_of(n, d)))(jax.random.split(key, BATCH))
    read = jax.vmap(lambda p: predict(linear_attention.forward(params, prompts.tokens(p))))
    return jnp.mean((read(batch) - batch.y_query) ** 2)


def loss_of_predictions(params, key, n, d):
    batch = jax.vmap(partial(sample, task=task_of(n, d)))(jax.random.split(key, BATCH))
    return jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2)


def milliseconds(loss, num_layers, n, d):
    """Per step of gradient descent with fresh prompts, once for each repeat, compiled as in fit."""

    @partial(jax.jit, compiler_options=moments.compiler_options())
    def train(params, key):
        def step(params, t):
            slope = jax.grad(loss)(params, jax.random.fold_in(key, t), n, d)
            return jax.tree.map(lambda w, g: w - 1e-6 * g, params, slope), None

        return jax.lax.scan(step, params, jnp.arange(STEPS))[0]

    params = linear_attention.init(jax.random.key(0), num_layers, 1, d, 0.02, jnp.float32)
    jax.block_until_ready(train(params, jax.random.key(1)))
    times = []
    for repeat in range(REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(train(params, jax.random.key(repeat)))
        times.append((time.perf_counter() - began) / STEPS * 1e3)
    return np.array(times)


def show(name, times):
    print(f"{name:44} {np.median(times):7.3f} ms  ({times.min():.3f} to {times.max():.3f})")


if __name__ == "__main__":
    short, long = (milliseconds(loss_of_moments, 3, n, 5) for n in (20, 20_000))
    show("moments drawn, d = 5, L = 3, n = 20", short)
    show("moments drawn, d = 5, L = 3, n = 20 000", long)
    print(f"ratio {np.median(long) / np.median(short):.2f}")
    for d, num_layers in ((5, 1), (5, 3), (8, 3), (10, 3), (10, 5)):
        tokens = milliseconds(loss_of_tokens, num_layers, 20, d)
        chosen = milliseconds(loss_of_predictions, num_layers, 20, d)
        show(f"tokens, d = {d}, L = {num_layers}, n = 20", tokens)
        show(f"predictions, d = {d}, L = {num_layers}, n = 20", chosen)
        print(f"ratio {np.median(chosen) / np.median(tokens):.2f}")
