"""Risks of trained models, each training on prompts of its own, with all heads or with some."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab.models import moments


def draw_prompts(task, seed, count, runs, n=None):  # -> Prompt [R, B]
    """Draw prompts of a Spec's task, others for each run, in float32."""
    keys = jax.random.split(jax.random.key(seed), runs)
    return _draw_all(keys, tasks.distribution(task, n, dtype=jnp.float32), count)


@partial(jax.jit, static_argnums=2)
def _draw_all(keys, task, count):
    return jax.vmap(lambda key: tasks.draw(key, task, count))(keys)


def select_run(tree, run):  # leaves [R, ...] -> [...]
    return jax.tree.map(lambda leaf: leaf[run], tree)


measure_risk = moments.compiled(Model.risk)  # model, Prompt [B] -> []


def mask_risks(models, prompts, masks):  # Model [R], Prompt [R, B], [R, M, L, H] -> [R, M]
    """Return the risk of each run under each of its masks, on its prompts."""
    models = jax.tree.map(np.asarray, jax.vmap(Model.plain)(models))
    rows = []
    for run, row in enumerate(masks):
        model, batch = select_run(models, run), select_run(prompts, run)
        rows.append([float(measure_risk(model.replace(gates=mask), batch)) for mask in row])
    return np.array(rows)
