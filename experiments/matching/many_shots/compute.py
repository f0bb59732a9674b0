"""Do more demonstrations than in training help, normalised and not?"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.many_shots.config import LINEAR, SCALINGS, Config
from experiments.matching.many_shots.long_prompts import (
    draw,
    linear_errors,
    softmax_errors,
    step_size,
)
from experiments.models import stacks
from lsa_lab.models import constructions


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    runs = {}
    for name in stacks.MODELS:
        sizes = (config.d, config.n, config.depth)
        training = [getattr(config, f"{name}_{what}") for what in ("steps", "batch")]
        heads = config.heads if name == "softmax" else 1
        stack = stacks.Stack(
            name, *sizes, *training, config.learning_rate, heads=heads, noise_std=config.noise_std
        )
        label = f"many_shots: {name}"
        runs[name] = stack, stacks.trained(stack, config.runs, config.seed, label, progress)
    steps = jnp.full(config.depth, step_size(config))
    descent = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[None], config.runs, 0),
        constructions.gradient_descent(steps, config.d),
    )
    # Twenty-seventh powers of long prompts outgrow float32, in which the training runs.
    linear = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), runs["linear"][1].params)
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    few = [n for n in config.shots if n <= config.softmax_most]
    drawn = draw(config, keys)
    # [noise, shots, R, ...]
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)
        for part in linear_errors(config, (descent, linear), drawn)
    )
    stack, run = runs["softmax"]
    levels = jnp.asarray(config.noises, jnp.float32)
    by_shots = [softmax_errors(config, stack, n, run.params, keys, levels) for n in few]
    status = [[one.kind for one in run.status] for _, run in runs.values()]
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (
                ("few", "run", "noise"),
                np.array([np.asarray(e) for e in by_shots], float),
            ),
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
