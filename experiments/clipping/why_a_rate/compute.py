"""Why is there a best clipping rate, and can the spectrum tell it unsearched?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS, Config
from experiments.clipping.why_a_rate.rate_rules import (
    MATRICES,
    MODULES,
    PREDICTORS,
    SEARCHES,
    best_edits,
    predicted_ranks,
)
from experiments.models import tasks
from lsa_lab.analyses import clipping
from lsa_lab.models.matrices import matrices

CUTS = tuple(MODULES.values())
AXES = {
    "change": ("condition", "prompts", "run", "layer", "module", "rate"),
    "risk": ("condition", "prompts", "run"),
    "rival": ("condition", "way", "run", "layer", "module", "rival_rate"),
    "predicted": ("condition", "run", "layer", "matrix", "predictor"),
    "gain": ("condition", "search", "run"),
    "ridge": ("condition", "run"),
}


def noise_of(condition, config):
    """The standard deviation of the labels' noise."""
    return config.noise if condition == "noisy" else spec_of(config).task.noise_std


def batches(key, spec, runs, config):  # -> {condition: three of Prompt [R, B]}
    """Prompts to choose with, to judge all edits by, and the chosen one; others for each run."""

    @jax.jit
    def draw(key, noise, scale):
        task = tasks.distribution(spec.task, noise_std=noise, dtype=jnp.float32)
        task = task.replace(covariance=scale**2 * jnp.eye(spec.task.d))
        size = 2 * config.prompts + config.more_prompts
        many = jax.vmap(partial(tasks.draw, task=task, size=size))(jax.random.split(key, runs))
        ends = (config.prompts, 2 * config.prompts)
        each = jax.tree.map(lambda leaf: jnp.split(leaf, ends, axis=1), many)
        return jax.tree.transpose(jax.tree.structure(many), jax.tree.structure([0] * 3), each)

    scale = {"shifted": config.shift}
    return {
        name: draw(key, noise_of(name, config), scale.get(name, 1.0))
        for name, key in zip(CONDITIONS, jax.random.split(key, len(CONDITIONS)), strict=True)
    }


def spectra(params):  # -> [R, L, M, p]
    stacks = jax.vmap(lambda params: matrices(params, MATRICES))(params)
    values = [np.asarray(clipping.singular_values(stacks[name])) for name in MATRICES]
    return np.stack(values, axis=2)


def measure(spec, params, prompts, splits, matched, config):
    """The variables of AXES in one condition but for ridge's, and the edits that were searched
    there; ``matched`` are those of the matched condition, None in it."""
    validation, test, judges = prompts
    rates = (*config.rates, clipping.DROP)
    curves = partial(trained_models.relative_curve, spec, params, modules=CUTS)
    risks, changes = zip(*(curves(batch, rates=rates) for batch in (validation, test)), strict=True)
    rivals = [curves(test, rates=config.rival_rates, decompose=split)[1] for split in splits]
    searched = [best_edits(changes[0], modules) for modules in SEARCHES.values()]
    edits = [
        [(layer, CUTS[module], rates[rate]) for layer, module, rate in each]
        for each in (*searched, matched or searched[0])
    ]
    return {
        "change": changes,
        "risk": risks,
        "rival": rivals,
        "predicted": predicted_ranks(spectra(params), config.energy),
        "gain": trained_models.gains(spec, params, judges, edits),
    }, searched[0]


def compute(config: Config, models, *, progress=None, checkpoints=None):
    runs, spec = models["transformer"], spec_of(config)
    path = trained_models.path_of(runs)
    key_prompts, key_directions = jax.random.split(jax.random.key(config.seed))
    splits = (clipping.sorted_magnitudes, partial(clipping.random_terms, key_directions))
    measured, matched = [], None
    for condition, prompts in batches(key_prompts, spec, len(path.w_q), config).items():
        at = config.early if condition == "under-trained" else -1
        params = jax.tree.map(lambda leaf, at=at: leaf[:, at], path)
        values, edits = measure(spec, params, prompts, splits, matched, config)
        noise = noise_of(condition, config)
        values["ridge"] = trained_models.ridge_risks(prompts[-1], noise)
        matched = matched or edits  # the first condition
        measured.append(values)
    data = {
        name: (axes, np.array([values[name] for values in measured], float))
        for name, axes in AXES.items()
    }
    kept = [clipping.kept_rank(spec.architecture.width, rate) for rate in config.rates]
    data["kept"] = (("rate",), [*kept, 0])
    data["status"] = (("trained",), [str(status) for status in runs.status])
    coordinates = {
        "condition": list(CONDITIONS),
        "prompts": ["validation", "test"],
        "layer": np.arange(1, spec.architecture.depth + 1),
        "module": list(MODULES),
        "matrix": list(MATRICES),
        "rate": [*config.rates, 1.0],  # 1: dropped
        "way": list(RIVALS),
        "rival_rate": list(config.rival_rates),
        "predictor": list(PREDICTORS),
        "search": [*SEARCHES, "of all, matched"],
    }
    return xr.Dataset(data, coordinates)
