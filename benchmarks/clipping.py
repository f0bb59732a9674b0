"""The grid of clipped weights: 8 rates x 4 layers x 5 modules x 3 shots x 8 seeds x 1000 prompts.

A softmax transformer with a read-in of width 32, two heads, norm and MLP, at d = 10. First with
eight different ranks, so that no two edits coincide, then with A2's rates, of which some do:

    python -m benchmarks.clipping
"""

import time
from functools import partial

from lsa_lab.harness import process

process.configure()

import jax
import jax.numpy as jnp

from lsa_lab import prompts
from lsa_lab.analyses import clipping
from lsa_lab.models import transformer
from lsa_lab.tasks.linear import LinearTask, sample

SEEDS, PROMPTS, SHOTS = 8, 1000, (4, 10, 20)
MODULES = ("w_q", "w_k", "w_v", "w_o", "mlp")
CONFIG = transformer.Config(11, 4, 2, 16, width=32, norm=True, mlp_width=64)
TASK = LinearTask(max(SHOTS), 10, noise_std=0.1, dtype=jnp.float32)
EIGHT_RANKS = tuple(1 - rank / 32 for rank in (30, 26, 22, 18, 14, 10, 6, 2))

traces = []


def risk(params, batch):
    traces.append(1)

    def predict(prompt):
        return transformer.predict(params, prompts.tokens(prompt), CONFIG)

    return (jax.vmap(predict)(batch) - batch.y_query) ** 2


if __name__ == "__main__":
    draw = jax.jit(jax.vmap(partial(sample, task=TASK)))
    batch = draw(jax.random.split(jax.random.key(0), PROMPTS))
    init = jax.vmap(partial(transformer.init, config=CONFIG, dtype=jnp.float32))
    params = init(jax.random.split(jax.random.key(1), SEEDS))
    for title, rates in (("eight ranks", EIGHT_RANKS), ("A2's rates", clipping.RATES)):
        for repeat in ("first", "again"):
            began, used, before = time.perf_counter(), time.process_time(), len(traces)
            found = clipping.curve(risk, params, batch, modules=MODULES, rates=rates, shots=SHOTS)
            wall, spent = time.perf_counter() - began, time.process_time() - used
            print(
                f"{title:12} {repeat}: {wall:6.1f} s, processor {spent:6.1f} s, "
                f"{found.change.mean.size} cells, risk traced {len(traces) - before} times"
            )
