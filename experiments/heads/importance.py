"""How much risk each head of trained models saves, by three ways of taking a head away."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models import sparse_models
from experiments.models.specs import Family
from lsa_lab import prompts
from lsa_lab.analyses import heads
from lsa_lab.models import moments, transformer
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt

Ablation = Literal["zero", "mean", "resample"]


def importances(
    family: Family,
    params,  # leaves [R, ...]
    batch: Prompt,  # leaves [B, ...]
    gates,  # [L, H], a row of sparse_models.masks(family)
    ablation: Ablation = "zero",
    over_prompts: Callable = np.mean,
) -> np.ndarray:  # [R, L, H, ...]
    """Δ_{l,h} = risk without head (l,h) - risk with all heads, raw; absent heads get 0."""
    present = np.argwhere(gates)
    masks = np.stack([gates, *(_without(gates, *place) for place in present)])
    found = risks(family, params, batch, masks, gates, ablation, over_prompts)
    raw = np.zeros((len(found), *np.shape(gates), *found.shape[2:]))
    raw[:, *present.T] = found[:, 1:] - found[:, :1]
    return raw


def risks(
    family: Family,
    params,  # leaves [R, ...]
    batch: Prompt,  # leaves [B, ...]
    masks,  # [M, L, H]
    gates,  # [L, H]
    ablation: Ablation = "zero",
    over_prompts: Callable = np.mean,
) -> np.ndarray:  # [R, M, ...]
    """Excess risks of R runs under M masks, all on the same prompts.

    "zero": a closed head writes nothing; "mean": what it writes on average over the batch;
    "resample": what it writes on the prompt before (analyses.heads). ``over_prompts`` makes a
    number, or some, of the squared errors [B]; np.median does not see prompts that explode.
    """
    like, params = plain(family, params)
    params = jax.tree.map(np.asarray, params)
    found = []
    for r in range(len(jax.tree.leaves(params)[0])):
        run = jax.tree.map(lambda leaf, r=r: leaf[r], params)
        fills = None if ablation == "zero" else _fills(like, ablation)(run, batch, gates)
        errors = (_errors(like)(run, batch, mask, fills) for mask in masks)
        found.append([over_prompts(np.asarray(each)) for each in errors])
    return np.array(found)


def plain(family: Family, params):
    """The skeleton of the family, its weights merged if they can be: one program serves all
    families of a shape."""
    like = sparse_models.skeleton(family)
    if family.kernel == "softmax":
        return like, params
    if isinstance(params, transformer.Params):
        merge = functools.partial(transformer.merge, config=sparse_models.shape(family))
        params = jax.vmap(merge)(params)
    return dataclasses.replace(like, key_width=None), params


@functools.cache
def _errors(family: Family):
    """(params of one run, batch, mask [L, H], fills [B, L, H, T, D] or None) -> [B], compiled."""

    def errors(params, batch, mask, fills):
        if fills is None:
            predicted = sparse_models.predict(family, params, batch, mask)
        else:
            run = functools.partial(sparse_models.forward, family, params, head_mask=mask)
            own = jax.vmap(lambda prompt, fill: predict(run(prompt, head_fill=fill)))(batch, fills)
            predicted = own * jax.vmap(prompts.normalised)(batch)[1]
        return (sparse_models.cut(predicted, batch) - batch.y_query) ** 2

    return jax.jit(errors, compiler_options=moments.compiler_options())


@functools.cache
def _fills(family: Family, ablation: Ablation):
    """(params of one run, batch, gates [L, H]) -> [B, L, H, T, D], compiled."""
    fill = heads.mean_fill if ablation == "mean" else heads.resampled_fill

    def fills(params, batch, gates):
        run = functools.partial(sparse_models.forward, family, params, head_mask=gates)
        writes = jax.vmap(lambda prompt: run(prompt).heads)(batch)
        return jnp.broadcast_to(fill(writes), writes.shape)

    return jax.jit(fills, compiler_options=moments.compiler_options())


def _without(gates, layer: int, head: int) -> np.ndarray:  # [L, H]
    mask = np.array(gates, float)
    mask[layer, head] = 0
    return mask
