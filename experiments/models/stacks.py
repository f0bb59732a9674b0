"""Stacks that experiments train and then look into: linear and softmax, small enough for a laptop.

Several experiments ask different questions about the same weights: ``trained`` keeps them in the
cache, and the first that needs them pays.
"""

import functools
import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import optax

import lsa_lab
from lsa_lab.harness import process
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.blocks import Keys
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import Files, Run, Training, fit

MODELS = ("linear", "softmax")  # that most experiments compare


@dataclass(frozen=True)
class Stack:
    """A model, the prompts it is trained on, and how.

    "linear" has one head of merged weights, no read-in, norm or MLP, and no other mask. "softmax"
    and "linear heads" are the two kernels of factored heads, as wide as a token or, behind a
    read-in, sharing the width among them.
    """

    model: Literal["linear", "softmax", "linear heads"]
    d: int
    n: int
    depth: int
    steps: int
    batch: int
    learning_rate: float
    heads: int = 1
    width: int | None = None  # D, behind a read-in
    norm: bool = False
    mlp_width: int | None = None
    keys: Keys = "demonstrations"
    init_scale: float | None = None  # None: 0.1 (linear), 1 (factored)
    sparsity: int | None = None
    noise_std: float = 0.0
    clip: float = 1.0  # of the gradient's norm

    def __post_init__(self):
        extras = (self.heads, self.width, self.norm, self.mlp_width, self.keys)
        if self.model == "linear" and extras != (1, None, False, None, "demonstrations"):
            raise ValueError(f"{self}: a merged stack has none of that; choose 'linear heads'")


def stack_of(model: str, config) -> Stack:
    """From a config with d, n, depth, heads, learning_rate, {model}_steps and {model}_batch."""
    steps, batch = (getattr(config, f"{model}_{what}") for what in ("steps", "batch"))
    heads = config.heads if model == "softmax" else 1
    shared = (config.d, config.n, config.depth, steps, batch, config.learning_rate)
    return Stack(model, *shared, heads=heads)


def clipped_stack(config) -> Stack:
    """Of the experiments on clipping: a config with the fields of ``configs.clipped.Models``."""
    sizes = {name: getattr(config, name) for name in ("d", "n", "depth", "heads", "width")}
    training = {name: getattr(config, name) for name in ("steps", "batch", "learning_rate")}
    extras = {"mlp_width": config.mlp_width, "noise_std": config.noise_std}
    return Stack("softmax", **sizes, **training, **extras, norm=True, init_scale=0.5)


def shape(stack: Stack) -> transformer.Config:
    """Of a stack of factored heads."""
    e = stack.d + 1
    return transformer.Config(
        e,
        stack.depth,
        stack.heads,
        e if stack.width is None else stack.width // stack.heads,
        width=stack.width,
        norm=stack.norm,
        kernel="softmax" if stack.model == "softmax" else "linear",
        keys=stack.keys,
        mlp_width=stack.mlp_width,
        init_scale=1.0 if stack.init_scale is None else stack.init_scale,
    )


def init(stack: Stack):
    """key -> params, in float32."""
    if stack.model == "linear":
        scale = 0.1 if stack.init_scale is None else stack.init_scale
        sizes = dict(num_layers=stack.depth, num_heads=1, d=stack.d)
        return partial(linear_attention.init, **sizes, scale=scale, dtype=jnp.float32)
    return partial(transformer.init, config=shape(stack), dtype=jnp.float32)


def forward(stack: Stack):
    """(params, tokens) -> Trace."""
    if stack.model == "linear":
        return linear_attention.forward
    return partial(transformer.forward, config=shape(stack))


def predictions(stack: Stack):
    """(params, prompts [B]) -> ŷ [B]."""
    if stack.model == "linear":
        return moments.predictions
    run = forward(stack)
    return lambda params, batch: jax.vmap(lambda one: predict(run(params, tokens(one))))(batch)


def task(stack: Stack, n: int | None = None, noise_std=None) -> LinearTask:
    """The law of the training prompts, or with another length or noise."""
    noise_std = stack.noise_std if noise_std is None else noise_std
    n = n or stack.n
    return LinearTask(n, stack.d, stack.sparsity, noise_std=noise_std, dtype=jnp.float32)


def draw(key, law: LinearTask, size: int):
    """Prompts [size]."""
    return jax.vmap(partial(sample, task=law))(jax.random.split(key, size))


def train(
    stack: Stack, noise, key, label, progress=None, checkpoint=None, identity="", chunk=100, **watch
) -> Run:
    """One run for each noise level [R], in float32: Adam on fresh prompts, warm-up then cosine."""
    predicted, rate, steps = predictions(stack), stack.learning_rate, stack.steps
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps, rate / 100)
    key_init, key_data = jax.random.split(key)
    training = Training(
        loss=lambda params, batch, _: ((predicted(params, batch) - batch.y_query) ** 2).mean(),
        sample=lambda key, noise_std: draw(key, task(stack, noise_std=noise_std), stack.batch),
        optimizer=lambda _: optax.chain(
            optax.clip_by_global_norm(stack.clip), optax.adam(schedule)
        ),
        steps=steps,
        label=label,
    )
    return fit(
        training,
        jax.jit(jax.vmap(init(stack)))(jax.random.split(key_init, len(noise))),
        jax.random.split(key_data, len(noise)),
        per_run=noise,
        files=Files(checkpoint, identity=identity),
        chunk=chunk,
        progress=progress,
        **watch,
    )


def trained(stack: Stack, runs: int, seed: int, label: str, progress=None, looks: int = 1) -> Run:
    """Runs [R] of a stack, from the cache if this code has trained them before.

    ``history["watch"]`` holds the params before the first step and after each of ``looks`` equal
    parts of the training, [R, looks+1, ...].
    """
    if stack.steps % looks:
        raise ValueError(f"{stack.steps} steps do not fall into {looks} equal parts")
    # What decides the weights: the stack, the seed, and the code that trains.
    identity = f"{stack!r} runs={runs} seed={seed} looks={looks} code={_code()}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    checkpoint = process.cache() / "trained" / f"{name}.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    noise = jnp.full(runs, stack.noise_std, jnp.float32)
    looking = {"chunk": stack.steps // looks, "watch": lambda params: params}
    key = jax.random.key(seed)
    return train(stack, noise, key, label, progress, checkpoint, identity, **looking)


@functools.cache
def _code() -> str:
    """A digest of the code that draws, runs and trains: weights of other code are not ours."""
    library = Path(lsa_lab.__file__).parent
    names = ("prompts.py", "tasks/linear.py", "training.py", "runs.py")
    files = [*(library / name for name in names), *sorted(library.glob("models/*.py"))]
    files.append(Path(__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
