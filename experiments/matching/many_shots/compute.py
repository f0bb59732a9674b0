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
from experiments.models.regression import of_kernel
from experiments.models.specs import KERNELS
from experiments.models.trained import trained
from lsa_lab.models import constructions


def trained_stacks(config, progress):  # -> {kernel: Runs}
    training = dict(seeds=config.runs, seed=config.seed)
    specs = {k: of_kernel(k, config, noise_std=config.noise_std, **training) for k in KERNELS}
    return {
        kernel: trained(spec, f"many_shots: {kernel}", progress=progress)
        for kernel, spec in specs.items()
    }


def descent(config):  # -> Params [R, ...], the same for all runs
    steps = jnp.full(config.depth, step_size(config))
    stack = constructions.gradient_descent(steps, config.d)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    runs = trained_stacks(config, progress)
    # Twenty-seventh powers of long prompts outgrow float32, in which the training runs.
    linear = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), runs["linear"].models().params)
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    prompts = sample_moments(config, keys)
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)  # [noise, shots, R, ...]
        for part in linear_errors(config, (descent(config), linear), prompts)
    )
    softmax = runs["softmax"].models()
    few = [n for n in config.shots if n <= config.softmax_most]
    noises = jnp.asarray(config.noises, jnp.float32)
    medians = [softmax_errors(config, softmax, n, keys, noises) for n in few]
    status = [[end.kind for end in each.status] for each in runs.values()]
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (("few", "run", "noise"), np.array(medians, float)),
            "status": (("trained", "run"), np.array(status)),
        },
        {
            "noise": list(config.noises),
            "shots": list(config.shots),
            "few": few,
            "model": list(LINEAR),
            "scaling": list(SCALINGS),
            "trained": list(runs),
        },
    )
