"""The risks of clipped models in four conditions, each model on prompts of its own."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import MODULES
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab.analyses import clipping


@functools.cache
def risk_of(spec):
    """The errors of a model on its own prompts. One function for each Spec: ``curve``, which would
    give one batch to all of them, compiles each function that it meets."""

    def risk(pair, _):
        params, batch = pair
        return Model(spec, params).errors(batch)

    return risk


def batches(key, spec, config):  # -> {condition: three of Prompt [R, B]}
    """Prompts to choose with, to judge all edits by, and the chosen one; others for each run."""

    @jax.jit
    def draw(key, noise, scale):
        task = tasks.distribution(spec.task, noise_std=noise, dtype=jnp.float32)
        task = task.replace(covariance=scale**2 * jnp.eye(config.d))
        size = 2 * config.prompts + config.more_prompts
        many = jax.vmap(partial(tasks.draw, task=task, size=size))(
            jax.random.split(key, config.runs)
        )
        ends = (config.prompts, 2 * config.prompts)
        cut = jax.tree.map(lambda leaf: jnp.split(leaf, ends, axis=1), many)
        return jax.tree.transpose(jax.tree.structure(many), jax.tree.structure([0] * 3), cut)

    noise = {"noisy": config.noise}
    scale = {"shifted": config.shift}
    return {
        name: draw(key, noise.get(name, config.noise_std), scale.get(name, 1.0))
        for name, key in zip(CONDITIONS, jax.random.split(key, len(CONDITIONS)), strict=True)
    }


def curves(spec, params, batch, rates, split=clipping.by_singular_value):
    """The risk of each run unclipped [R], and its change as a share of that [R, K, M, Q]."""
    shape = jax.tree.map(lambda leaf: leaf[0], batch)
    grid = dict(modules=tuple(MODULES.values()), rates=rates, split=split)
    curve = clipping.curve(risk_of(spec), (params, batch), shape, **grid)
    risk = curve.unclipped.mean[:, 0]
    return risk, curve.change.mean[:, 0] / risk[:, None, None, None]


@functools.cache
def mean_risks(spec):  # (params, batch), both [R, ...] -> [R]
    risk = risk_of(spec)
    return jax.jit(lambda *pair: jax.lax.map(lambda run: risk(run, None).mean(), pair))


def gains(spec, params, batch, edits, rates):  # -> [R]
    """What the edit of each run gains, as a share of its risk unclipped."""
    clipped = []
    for run, (layer, module, rate) in enumerate(edits):
        own = jax.tree.map(lambda leaf, run=run: leaf[run], params)
        modules = list(MODULES.values())[module]
        clipped.append(clipping.clip(own, layer, modules, rates[rate]))
    clipped = jax.tree.map(lambda *leaves: jnp.stack(leaves), *clipped)
    before, after = (mean_risks(spec)(each, batch) for each in (params, clipped))
    return 1 - np.asarray(after / before)
