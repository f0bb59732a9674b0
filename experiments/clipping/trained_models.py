"""The trained models that the experiments on clipping share, each trained once."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

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


@partial(jax.jit, static_argnums=(2, 3))
def own_prompts(key, task, runs, size):  # -> Prompt [R, B]
    """Prompts of its own for each run, so that an interval over runs is one over prompts too."""
    return jax.vmap(partial(tasks.draw, task=task, size=size))(jax.random.split(key, runs))


@functools.cache
def _own_risk(spec, cut):
    """The errors of a model on the first shots of its own prompts. One function for each Spec:
    ``curve``, which would give one batch to all runs, compiles each function it meets."""

    def risk(pair, shape):
        params, batch = pair
        n = shape.x.shape[1]
        batch = batch.replace(x=batch.x[:, :n], y=batch.y[:, :n])
        model = Model(spec, params)
        return model.clipped_errors(batch) if cut else model.errors(batch)

    return risk


def own_curve(spec, params, batch, cut=True, **grid):  # params, prompts [R, B] -> Curve
    """``clipping.curve`` with prompts of its own for each run, and answers that are ``cut``: a
    clipped model may explode, and its squared error has no bound."""
    shape = jax.tree.map(lambda leaf: leaf[0], batch)
    return clipping.curve(_own_risk(spec, cut), (params, batch), shape, **grid)


def relative_curve(spec, params, batch, **grid):  # -> risk unclipped [R], change [R, K, M, Q]
    """The risk of each run unclipped, and its change as a share of that."""
    curve = own_curve(spec, params, batch, **grid)
    risk = curve.unclipped.mean[:, 0]
    return risk, curve.change.mean[:, 0] / risk[:, None, None, None]


@functools.cache
def own_risks(spec, cut=True):  # (params, batch), both [R, ...] -> [R]
    """The mean over its prompts of each run's errors; compiled once for each Spec."""
    risk = _own_risk(spec, cut)
    return moments.compiled(lambda *pair: jax.lax.map(lambda run: risk(run, run[1]).mean(), pair))


def gains(spec, params, batch, edits):  # edits: one a run, several times -> [S, R]
    """What each edit (layer, modules, rate) of a run gains, as a share of its risk unclipped."""
    risks = own_risks(spec)
    before = np.asarray(risks(params, batch))
    after = [risks(_clip_runs(params, choice), batch) for choice in edits]
    return 1 - np.stack(after) / before


def _clip_runs(params, edits):
    """The params [R, ...], each run after its own edit."""
    each = [jax.tree.map(lambda leaf, run=run: leaf[run], params) for run in range(len(edits))]
    models = [clipping.clip(own, *edit) for own, edit in zip(each, edits, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


@partial(jax.jit, static_argnums=1)
def ridge_risks(batch, noise_std):  # Prompt [R, B] -> [R]
    """The mean excess risk of ridge regression, the best of all predictors: for w ~ N(0, I) its
    penalty σ²/n gives the posterior mean."""

    def error(prompt):
        weights = estimators.ridge(prompt, noise_std**2 / len(prompt.y))
        return (weights @ prompt.x_query - prompt.y_query) ** 2

    return jax.vmap(jax.vmap(error))(batch).mean(-1)


def shifted_tasks(spec, short, small, large):  # -> {name: LinearTask}
    """The task of training, and others that differ from it in one thing; all have prompts as large
    as w ~ N(0, I) gives but for the scale of x."""
    task = tasks.distribution(spec.task, dtype=jnp.float32)
    task = task.replace(covariance=jnp.eye(spec.task.d, dtype=jnp.float32))
    return {
        "as trained": task,
        "no noise": task.replace(noise_std=0.0),
        "fewer shots": task.replace(n=short),
        "smaller inputs": task.replace(covariance=small**2 * task.covariance),
        "larger inputs": task.replace(covariance=large**2 * task.covariance),
    }


def repeated(batch, times):  # Prompt [..., n] -> [..., times n]
    """Softmax reads a demonstration given k times as it reads it once, if all are."""
    return batch.replace(x=jnp.tile(batch.x, (times, 1)), y=jnp.tile(batch.y, times))


def deepest(params, module, top_k) -> int:
    """The layer that A2's Algorithm 1 clips: of the ``top_k`` by condition number the deepest."""
    conditions = clipping.condition_numbers(params, module)
    return int(max(np.lexsort((np.arange(len(conditions)), conditions))[-top_k:]))


def float64_params(runs):  # -> params [R', ...]
    """The params of the linear stacks that did not diverge."""
    return runs.models(seeds=runs.finished[0]).cast_float64().params


def risk_over_ridge(key, spec, params, size=4096):  # params [R, ...] -> [R]
    """The mean excess risk of each run over that of ridge regression, on prompts of its own."""
    batch = own_prompts(key, tasks.distribution(spec.task), len(params.w_kq), size)
    return own_risks(spec, cut=False)(params, batch) / ridge_risks(batch, spec.task.noise_std)
