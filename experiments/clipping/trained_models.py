"""The trained models that the experiments on clipping share, each trained once."""

import functools
from functools import partial

import jax
import jax.numpy as jnp

from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import estimators
from lsa_lab.analyses import clipping
from lsa_lab.models import moments


def path_of(runs):  # -> leaves [R', P, ...]
    """The params on the path of training, of the runs that did not diverge."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[runs.finished[0]]), runs.path)


def final(path):  # [R', P, ...] -> [R', ...]
    """The params after the last step."""
    return jax.tree.map(lambda leaf: leaf[:, -1], path)


def squared_error(spec):
    """(params, prompts [B]) -> the excess error of each [B]; built once, it is compiled once."""
    return lambda params, batch: Model(spec, params).errors(batch)


@partial(jax.jit, static_argnums=(2, 3))
def own_prompts(key, task, runs, size):  # -> Prompt [R, B]
    """Prompts of its own for each run, so that an interval over runs is one over prompts too."""
    return jax.vmap(partial(tasks.draw, task=task, size=size))(jax.random.split(key, runs))


@functools.cache
def _own_risk(spec):
    """The errors of a model on its own prompts, cut to the shots of others. One function for each
    Spec: ``curve``, which would give one batch to all runs, compiles each function it meets."""

    def risk(pair, shape):
        params, batch = pair
        n = shape.x.shape[1]
        return Model(spec, params).errors(batch.replace(x=batch.x[:, :n], y=batch.y[:, :n]))

    return risk


def own_curve(spec, params, batch, **grid):  # params, prompts [R, B] -> Curve
    """``clipping.curve`` with prompts of its own for each run."""
    shape = jax.tree.map(lambda leaf: leaf[0], batch)
    return clipping.curve(_own_risk(spec), (params, batch), shape, **grid)


@functools.cache
def own_risks(spec):  # (params, batch), both [R, ...] -> [R]
    """The mean over its prompts of each run's errors; compiled once for each Spec."""
    risk = _own_risk(spec)
    return moments.compiled(lambda *pair: jax.lax.map(lambda run: risk(run, run[1]).mean(), pair))


@partial(jax.jit, static_argnums=1)
def ridge_risks(batch, noise_std):  # Prompt [R, B] -> [R]
    """The mean excess risk of ridge regression, the best of all predictors: for w ~ N(0, I) its
    penalty σ²/n gives the posterior mean."""

    def error(prompt):
        weights = estimators.ridge(prompt, noise_std**2 / len(prompt.y))
        return (weights @ prompt.x_query - prompt.y_query) ** 2

    return jax.vmap(jax.vmap(error))(batch).mean(-1)


def float64_params(runs):  # -> params [R', ...]
    """The params of the linear stacks that did not diverge."""
    return runs.models(seeds=runs.finished[0]).in_float64().params


def risk_over_ridge(key, spec, params, size=4096):  # params [R, ...] -> [R]
    """The mean excess risk of each run over that of ridge regression, on prompts of its own."""
    batch = own_prompts(key, tasks.distribution(spec.task), len(params.w_kq), size)
    return own_risks(spec)(params, batch) / ridge_risks(batch, spec.task.noise_std)
