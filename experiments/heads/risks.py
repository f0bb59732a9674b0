"""Risks of trained models, each training on prompts of its own, with all heads or with some."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab.models import moments


def draw_prompts(task, seed, count, n):  # -> Prompt [B]
    law = tasks.distribution(task, n, dtype=jnp.float32)
    return select_run(tasks.draw_runs(jax.random.key(seed), law, 1, count), 0)


def select_run(tree, run):  # leaves [R, ...] -> [...]
    return jax.tree.map(lambda leaf: leaf[run], tree)


measure_risk = moments.compiled(Model.risk)  # model, Prompt [B] -> []


def mask_risks(model, batch, masks):  # Prompt [B], [M, L, H] -> [M]
    model = model.plain()
    return np.array([float(measure_risk(model.replace(gates=mask), batch)) for mask in masks])
