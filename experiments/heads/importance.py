"""How much risk each head of trained models saves."""

import functools

import jax
import numpy as np

from experiments.heads.each_run import run
from experiments.models.model import Model
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def importances(models: Model, batch: Prompt) -> np.ndarray:  # [R, ...], [B, ...] -> [R, L, H]
    """Δ_{l,h} = risk without head (l,h) - risk with all heads, raw, of one variant; absent heads
    get 0."""
    gates = np.asarray(models.gates[0])
    present = np.argwhere(gates)
    masks = np.array([gates] * (1 + len(present)), float)
    masks[np.arange(1, len(masks)), *present.T] = 0
    by_mask = risks(models, batch, masks)
    raw = np.zeros((len(by_mask), *gates.shape))
    raw[:, *present.T] = by_mask[:, 1:] - by_mask[:, :1]
    return raw


def risks(models: Model, batch: Prompt, masks) -> np.ndarray:  # [R, ...], [B, ...] -> [R, M]
    """Excess risks of R runs under M masks [M, L, H] in place of the models' gates, all on the same
    prompts; a closed head writes nothing."""
    models = jax.tree.map(np.asarray, jax.vmap(Model.plain)(models))
    rows = []
    for r in range(len(models.gates)):
        model = run(models, r)
        errors = (_errors()(model.replace(gates=mask), batch) for mask in masks)
        rows.append([np.mean(np.asarray(each)) for each in errors])
    return np.array(rows)


@functools.cache
def _errors():
    """(model, batch) -> [B], compiled."""
    return jax.jit(Model.clipped_errors, compiler_options=moments.compiler_options())
