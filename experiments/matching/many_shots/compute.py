"""Train two stacks, and ask them and a constructed descent with more and more demonstrations."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.many_shots.config import LINEAR, SCALINGS, Config
from experiments.matching.many_shots.long_prompts import (
    linear_errors,
    sample_moments,
    softmax_errors,
    step_size,
)
from experiments.models import stacks
from lsa_lab.models import constructions


def trained_stacks(config, progress):  # -> {name: (Stack, Run)}
    by_name = {}
    for name in stacks.MODELS:
        sizes = (config.d, config.n, config.depth)
        training = [getattr(config, f"{name}_{what}") for what in ("steps", "batch")]
        heads = config.heads if name == "softmax" else 1
        stack = stacks.Stack(
            name, *sizes, *training, config.learning_rate, heads=heads, noise_std=config.noise_std
        )
        label = f"many_shots: {name}"
        by_name[name] = stack, stacks.trained(stack, config.runs, config.seed, label, progress)
    return by_name


def descent(config):  # -> Params [R, ...], the same for all runs
    steps = jnp.full(config.depth, step_size(config))
    stack = constructions.gradient_descent(steps, config.d)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    trained = trained_stacks(config, progress)
    # Twenty-seventh powers of long prompts outgrow float32, in which the training runs.
    linear = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), trained["linear"][1].params)
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    prompts = sample_moments(config, keys)
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)  # [noise, shots, R, ...]
        for part in linear_errors(config, (descent(config), linear), prompts)
    )
    stack, run = trained["softmax"]
    few = [n for n in config.shots if n <= config.softmax_most]
    noises = jnp.asarray(config.noises, jnp.float32)
    softmax = [softmax_errors(config, stack, n, run.params, keys, noises) for n in few]
    status = [[end.kind for end in run.status] for _, run in trained.values()]
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (("few", "run", "noise"), np.array(softmax, float)),
            "status": (("trained", "run"), np.array(status)),
        },
        {
            "noise": list(config.noises),
            "shots": list(config.shots),
            "few": few,
            "model": list(LINEAR),
            "scaling": list(SCALINGS),
            "trained": list(stacks.MODELS),
        },
    )
