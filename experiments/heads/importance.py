"""How much risk each head of trained models saves, by three ways of taking a head away."""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.each_run import run
from experiments.models.model import Model, as_read, cut
from lsa_lab.analyses import heads
from lsa_lab.models import moments
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt

Ablation = Literal["zero", "mean", "resample"]


def importances(
    models: Model,  # leaves [R, ...], of one variant
    batch: Prompt,  # leaves [B, ...]
    ablation: Ablation = "zero",
) -> np.ndarray:  # [R, L, H]
    """Δ_{l,h} = risk without head (l,h) - risk with all heads, raw; absent heads get 0."""
    gates = np.asarray(models.gates[0])
    present = np.argwhere(gates)
    masks = np.stack([gates, *(_without(gates, *place) for place in present)])
    by_mask = risks(models, batch, masks, ablation)
    raw = np.zeros((len(by_mask), *gates.shape))
    raw[:, *present.T] = by_mask[:, 1:] - by_mask[:, :1]
    return raw


def risks(
    models: Model,  # leaves [R, ...]
    batch: Prompt,  # leaves [B, ...]
    masks,  # [M, L, H], in place of the models' gates
    ablation: Ablation = "zero",
) -> np.ndarray:  # [R, M]
    """Excess risks of R runs under M masks, all on the same prompts.

    "zero": a closed head writes nothing; "mean": what it writes on average over the batch;
    "resample": what it writes on the prompt before (analyses.heads).
    """
    models = jax.tree.map(np.asarray, jax.vmap(Model.plain)(models))
    rows = []
    for r in range(len(models.gates)):
        model = run(models, r)
        fills = None if ablation == "zero" else _fills(ablation)(model, batch)
        errors = (_errors()(model.replace(gates=mask), batch, fills) for mask in masks)
        rows.append([np.mean(np.asarray(each)) for each in errors])
    return np.array(rows)


@functools.cache
def _errors():
    """(model, batch, fills [B, L, H, T, D] or None) -> [B], compiled."""

    def errors(model: Model, batch: Prompt, fills):
        if fills is None:
            return model.cut_errors(batch)
        traces = jax.vmap(model.forward)(batch, fills)
        scale = jax.vmap(functools.partial(as_read, model.spec.architecture))(batch)[1]
        return (cut(jax.vmap(predict)(traces) * scale, batch) - batch.y_query) ** 2

    return jax.jit(errors, compiler_options=moments.compiler_options())


@functools.cache
def _fills(ablation: Ablation):
    """(model, batch) -> [B, L, H, T, D], compiled."""
    fill = heads.mean_fill if ablation == "mean" else heads.resampled_fill

    def fills(model: Model, batch: Prompt):
        writes = jax.vmap(lambda prompt: model.forward(prompt).heads)(batch)
        return jnp.broadcast_to(fill(writes), writes.shape)

    return jax.jit(fills, compiler_options=moments.compiler_options())


def _without(gates, layer: int, head: int) -> np.ndarray:  # [L, H]
    mask = np.array(gates, float)
    mask[layer, head] = 0
    return mask
