"""Stacks of factored heads with any kernel and mask: what ``stacks.Stack`` cannot name.

A linear kernel with a norm and an MLP, and causal models. Trained as ``stacks.trained`` trains, and
kept in the same cache.
"""

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import optax

from experiments import process, stacks
from lsa_lab.models import transformer
from lsa_lab.models.blocks import Keys
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.training import Run, fit


@dataclass(frozen=True)
class Factored(stacks.Stack):
    """A stack of the factored kind (its ``model`` is "softmax", whatever the kernel)."""

    kernel: Literal["linear", "softmax"] = "softmax"
    keys: Keys = "demonstrations"


def shape(stack: Factored) -> transformer.Config:
    """What it is made of."""
    return dataclasses.replace(stacks.shape(stack), kernel=stack.kernel, keys=stack.keys)


def predictions(stack: Factored):
    """(params, prompts [B]) -> ŷ [B]."""
    run = partial(transformer.forward, config=shape(stack))
    return lambda params, batch: jax.vmap(lambda one: predict(run(params, tokens(one))))(batch)


def trained(stack: Factored, runs: int, seed: int, label: str, progress=None) -> Run:
    """Runs [R] in float32, from the cache if this code has trained them before."""
    identity = f"{stack!r} runs={runs} seed={seed} code={stacks._code()}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    checkpoint = process.cache() / "trained" / f"factored-{name}.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    predicted, rate, steps = predictions(stack), stack.learning_rate, stack.steps
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps, rate / 100)
    key_init, key_data = jax.random.split(jax.random.key(seed))
    init = partial(transformer.init, config=shape(stack), dtype=jnp.float32)
    return fit(
        lambda params, batch: ((predicted(params, batch) - batch.y_query) ** 2).mean(),
        jax.jit(jax.vmap(init))(jax.random.split(key_init, runs)),
        optax.chain(optax.clip_by_global_norm(stack.clip), optax.adam(schedule)),
        lambda key: stacks.draw(key, stacks.task(stack), stack.batch),
        jax.random.split(key_data, runs),
        steps,
        progress=progress,
        label=label,
        checkpoint=checkpoint,
        identity=identity,
    )
