"""Risks and sizes of updates of softmax attention with norms and without, pair by pair."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.norms_and_updates.config import NORMS, Config, normed
from experiments.descent.softmax_sizes import of_head
from experiments.models.model import Model
from experiments.models.specs import restored
from experiments.models.tasks import distribution, draw
from experiments.models.trained import trained
from lsa_lab import estimators
from lsa_lab.models.blocks import layer_norm
from lsa_lab.status import refuse_divergence


def sizes_at_query(model, prompt):  # -> |ΔW|² / |h|² [L], |ΔW φ|² / |h|² [L]
    """Sizes of every layer, its heads together: they read the stream after the norm, if it has one.

    Beside the token h that is written to: |ΔW| itself changes with the units of the stream, and
    the function does not. As medians over prompts are taken of them, they are squares still.
    """
    stream, params = model.forward(prompt).stream[:-1], model.params  # [L, T, D]
    rows = stream
    if model.spec.architecture.norm:
        scales = params.attention_norm_scale, params.attention_norm_offset
        rows = jax.vmap(layer_norm)(stream, *scales)
    of_layer = jax.vmap(of_head, (0, 0, 0, 0, None))  # heads
    weights = params.w_v, params.w_k, params.w_q, params.w_o
    squares, _, written = jax.vmap(of_layer)(*weights, rows)
    length = (stream[:, -1] ** 2).sum(-1)
    return squares.sum(1) / length, (written.sum(1) ** 2).sum(-1) / length


def shrink(params, factor):
    """The same model, all of whose layers write ``factor`` times as much."""
    return params.replace(w_o=factor * params.w_o)


def measured(spec, config, row):  # one run's params [P, ...] and prompts [B] -> {name: array}
    path, batch = row
    last = jax.tree.map(lambda leaf: leaf[-1], path)

    def risk(params):
        return Model(spec, params).errors(batch).mean()

    update, written = jax.vmap(partial(sizes_at_query, Model(spec, last)))(batch)
    weaker = jax.lax.map(lambda s: risk(shrink(last, s)), jnp.array(config.shrinkages))
    return {
        "risk": jax.lax.map(risk, path),
        "update": jnp.sqrt(jnp.median(update, axis=0)),
        "written": jnp.sqrt(jnp.median(written, axis=0)),
        "shrunk": weaker,
    }


def ridge_risk(spec, batch):
    """That of ridge regression with the best penalty."""
    penalty = spec.task.noise_std**2 / max(spec.task.lengths)
    errors = jax.vmap(lambda p: estimators.ridge(p, penalty) @ p.x_query - p.y_query)(batch)
    return (errors**2).mean()


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    plain = restored(config.plain)
    specs = dict(zip(NORMS, (plain, normed(plain)), strict=True))
    runs = {
        norm: trained(spec, f"norms_and_updates: {norm} norms", progress=progress)
        for norm, spec in specs.items()
    }
    for norm, each in runs.items():
        refuse_divergence(each.status, f"norms_and_updates: {norm} norms", needs_all=True)
    keys = jax.random.split(jax.random.key(config.seed), plain.training.seeds)
    task = distribution(plain.task, max(plain.task.lengths))
    batches = jax.lax.map(lambda key: draw(key, task, config.prompts), keys)
    values = []
    for norm, spec in specs.items():
        path = jax.tree.map(lambda leaf: np.asarray(leaf, float), runs[norm].path)
        rows = jax.jit(partial(jax.lax.map, partial(measured, spec, config)))((path, batches))
        values.append(jax.tree.map(np.asarray, rows))
    axes = {"risk": "step", "update": "layer", "written": "layer", "shrunk": "shrinkage"}
    data = {
        name: (("norm", "run", axis), np.stack([each[name] for each in values]))
        for name, axis in axes.items()
    }
    ridge = jax.jit(partial(jax.lax.map, partial(ridge_risk, plain)))(batches)
    return xr.Dataset(
        data | {"ridge": (("run",), np.asarray(ridge))},
        {
            "norm": list(NORMS),
            "step": runs["with"].path_steps,
            "layer": np.arange(1, plain.architecture.depth + 1),
            "shrinkage": list(config.shrinkages),
        },
    )
