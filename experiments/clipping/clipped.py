"""Edits of trained transformers, and prompts to test them on, for the experiments on clipping.

A random edit is the null of a truncation: it adds a Gaussian matrix to the same matrices of the
same layer, with the Frobenius norm of what the truncation removes. Predictions are clipped at twice
the largest label of their prompt, for an edited model may explode.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import Model, clip_predictions
from experiments.models.specs import Task
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.models.matrices import matrices
from lsa_lab.tasks.linear import LinearTask

MODELS = {"regression": "small transformer", "two classes": "two classes"}
PARTS = {"attention": "attention", "MLP": "mlp"}  # of a layer; names of modules for ``clipping``
SHIFTS = ("as trained", "no noise", "fewer shots", "smaller inputs", "larger inputs")


def find_task(spec) -> str:
    return "two classes" if spec.task.labels == "signs" else "regression"


def load_params(runs, most: int | None = None):  # -> leaves [R, ...]
    """Return the params after training, of the first ``most`` trainings that did not diverge."""
    params = runs.models(seeds=runs.finished[0]).params
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[:most]), params)


def shift_task(task: Task, shift: str, small: float, large: float) -> LinearTask:
    """Return the task of training, or one with other noise or scale of x; ``shorten`` for shots."""
    law = distribution(task, dtype=jnp.float32)
    scale = {"smaller inputs": small, "larger inputs": large}.get(shift, 1.0)
    noise_std = 0.0 if shift == "no noise" else task.noise_std
    covariance = scale**2 * jnp.eye(task.d, dtype=jnp.float32)
    return law.replace(covariance=covariance, noise_std=noise_std)


def shorten(batch, count: int):  # Prompt [R, B] -> Prompt [R, B]
    """Return prompts of the first ``count`` demonstrations, repeated until there are n."""
    rows = np.arange(batch.x.shape[2]) % count
    return batch.replace(x=batch.x[:, :, rows], y=batch.y[:, :, rows])


def edit_all(params, edits: Sequence[clipping.Edit], decompose=clipping.svd_terms):
    """Return the params of every run after every edit: leaves [R, ...] -> [R, E, ...]."""
    modules = tuple(dict.fromkeys(module for edit in edits for module in edit.modules))
    pieces = decompose(jax.vmap(partial(matrices, modules=modules))(params))
    first = jax.tree.map(lambda leaf: leaf[0], params)
    whole = clipping.kept_ranks(first, clipping.Edit(0, modules, 0.0))
    kept = [whole | clipping.kept_ranks(first, edit) for edit in edits]
    table = jax.tree.map(lambda *ranks: np.stack(ranks), *kept)
    return _rebuild_all(params, pieces, table)


_rebuild_all = jax.jit(jax.vmap(jax.vmap(clipping.rebuild, (None, None, 0)), (0, 0, None)))


def take_edits(models, places):  # leaves [R, E, ...], [R, S] -> [R, S, ...]
    runs = np.arange(len(places))[:, None]
    return jax.tree.map(lambda leaf: leaf[runs, places], models)


def join_edits(*groups):  # each [R, E, ...] or unedited [R, ...] -> [R, sum of E, ...]
    """Return groups of edits side by side; params without an axis of edits are one of them."""
    ndim = max(group.w_k.ndim for group in groups)
    widened = [
        jax.tree.map(lambda leaf: leaf[:, None], group) if group.w_k.ndim < ndim else group
        for group in groups
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves, 1), *widened)


@jax.jit
def disturb_all(key, params, edited):  # [R, ...], [R, E, ...] -> [R, E, ...]
    leaves, tree = jax.tree.flatten(params)
    keys = jax.tree.unflatten(tree, list(jax.random.split(key, len(leaves))))

    def disturb(key, leaf, new):
        within = tuple(range(3, new.ndim))  # the axes of one layer's matrix, heads joined
        noise = jax.random.normal(key, new.shape, new.dtype)
        removed, drawn = (
            jnp.sqrt((values**2).sum(within, keepdims=True))
            for values in (leaf[:, None] - new, noise)
        )
        return leaf[:, None] + removed / drawn * noise

    return jax.tree.map(disturb, keys, params, edited)


@partial(jax.jit, static_argnums=0)
def predict_all(spec, params, batch):  # leaves [R, E, ...], Prompt [R, B] -> [R, E, B]
    def predict(params, prompts):
        return clip_predictions(Model(spec, params).predict(prompts), prompts)

    def predict_run(row):
        return jax.lax.map(partial(predict, prompts=row[1]), row[0])

    return jax.lax.map(predict_run, (params, batch))


def compute_risks(predictions, batch) -> np.ndarray:  # [R, ..., B], Prompt [R, B] -> [R, ...]
    """Return mean squared errors; for two classes, labels ±1, four times the Brier score."""
    target = _align(np.asarray(batch.y_query, float), predictions)
    return ((np.asarray(predictions, float) - target) ** 2).mean(-1)


def compute_accuracies(predictions, batch) -> np.ndarray:  # [R, ..., B], Prompt [R, B] -> [R, ...]
    target = _align(np.asarray(batch.y_query) > 0, predictions)
    return ((np.asarray(predictions) > 0) == target).mean(-1)


def _align(target, predictions):  # [R, B], [R, ..., B] -> [R, 1 ..., B]
    return target.reshape(len(target), *(1,) * (np.ndim(predictions) - 2), -1)


def find_able(risks, batch, worst: float) -> np.ndarray:  # [R], Prompt [R, B] -> [R] bool
    """Return which unedited models enter: those below ``worst`` times the risk of predicting 0."""
    return np.asarray(risks) < worst * (np.asarray(batch.y_query, float) ** 2).mean(-1)


def choose_layers(params, module: str, top_k: int) -> np.ndarray:  # leaves [R, ...] -> [R]
    """Return the deepest of the ``top_k`` layers with the largest condition numbers in each run."""
    runs = [jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(len(params.w_q))]
    numbers = np.stack([clipping.condition_numbers(run, module) for run in runs])
    return np.argsort(numbers, axis=1, kind="stable")[:, -top_k:].max(1)
