"""Ask two trained stacks and a constructed descent with more and more demonstrations."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching.many_shots.config import LINEAR, SCALINGS, TRAINED, Config
from experiments.matching.many_shots.long_prompts import (
    linear_errors,
    linear_wrong,
    sample_moments,
    softmax_answers,
    step_size,
)
from lsa_lab.models import constructions


def descent(config):  # -> Params [R, ...], the same for all runs
    steps = jnp.full(config.depth, step_size(config))
    stack = constructions.gradient_descent(steps, config.d)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    linear, softmax = (models[name].models(seeds=slice(config.runs)) for name in TRAINED)
    # Powers of long prompts outgrow float32, in which the training runs.
    stacks = descent(config), linear.in_float64().params
    own_units = False, linear.spec.architecture.own_units
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)  # [noise, shots, R, ...]
        for part in linear_errors(config, own_units, stacks, sample_moments(config, keys))
    )
    classes = sample_moments(config, keys, "signs")
    wrong = np.asarray(linear_wrong(config, own_units, stacks, classes))
    few = [n for n in config.shots if n <= config.softmax_most]
    both = [softmax_errors(config, softmax, n, keys) for n in few]
    medians, softmax_wrong = (np.array(parts) for parts in zip(*both, strict=True))
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (("few", "run"), medians),
            "wrong": (("run", "shots", "model"), wrong),
            "softmax_wrong": (("few", "run"), softmax_wrong),
        },
        {
            "noise": list(config.noises),
            "shots": list(config.shots),
            "few": few,
            "model": list(LINEAR),
            "scaling": list(SCALINGS),
        },
    )


def softmax_errors(config, models, n, keys):  # -> [R], [R]
    """The median squared error in regression, and the share of wrong classes."""
    predicted, target = map(np.asarray, softmax_answers(config, models, n, "real", keys))
    answered, classes = map(np.asarray, softmax_answers(config, models, n, "signs", keys))
    squared = (predicted.astype(float) - target) ** 2
    return np.median(squared, axis=1), (answered * classes <= 0).mean(1)
