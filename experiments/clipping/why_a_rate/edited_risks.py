"""The risks of clipped models in four conditions, each model on prompts of its own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.transformers import spec_of
from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import MODULES
from experiments.models import tasks
from lsa_lab.analyses import clipping


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
        cut = jax.tree.map(lambda leaf: jnp.split(leaf, ends, axis=1), many)
        return jax.tree.transpose(jax.tree.structure(many), jax.tree.structure([0] * 3), cut)

    scale = {"shifted": config.shift}
    return {
        name: draw(key, noise_of(name, config), scale.get(name, 1.0))
        for name, key in zip(CONDITIONS, jax.random.split(key, len(CONDITIONS)), strict=True)
    }


def curves(spec, params, batch, rates, split=clipping.by_singular_value):
    """The risk of each run unclipped [R], and its change as a share of that [R, K, M, Q]."""
    grid = dict(modules=tuple(MODULES.values()), rates=rates, split=split)
    curve = trained_models.own_curve(spec, params, batch, **grid)
    risk = curve.unclipped.mean[:, 0]
    return risk, curve.change.mean[:, 0] / risk[:, None, None, None]


def gains(spec, params, batch, edits, rates):  # edits: one a run, several times -> [S, R]
    """What each edit of a run gains, as a share of the run's risk unclipped."""
    risks = trained_models.own_risks(spec)
    before = risks(params, batch)
    after = [risks(_clipped(params, choice, rates), batch) for choice in edits]
    return 1 - np.stack(after) / np.asarray(before)


def _clipped(params, edits, rates):
    """The params [R, ...], each run after its own edit (layer, module, rate)."""
    models = []
    for run, (layer, module, rate) in enumerate(edits):
        own = jax.tree.map(lambda leaf, run=run: leaf[run], params)
        models.append(clipping.clip(own, layer, list(MODULES.values())[module], rates[rate]))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
