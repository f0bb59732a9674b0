"""Risks and sizes of updates of softmax attention with norms and without, pair by pair; and sizes
by the number of demonstrations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.norms_and_updates.by_shots import balanced, layer_sizes, measure_by_shots
from experiments.descent.norms_and_updates.config import NORMS, Config
from experiments.descent.specs import SOFTMAX, STACK
from experiments.models.model import Model
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators
from lsa_lab.models.blocks import layer_norm
from lsa_lab.store import parts
from lsa_lab.training.status import refuse_divergence


def rows_read(model, prompt):  # -> [L, T, D] twice
    """The stream before every layer, and what its heads read, which a norm may have scaled."""
    stream, params = model.forward(prompt).stream[:-1], model.params
    if not model.spec.architecture.norm:
        return stream, stream
    scales = params.attention_norm_scale, params.attention_norm_offset
    return stream, jax.vmap(layer_norm)(stream, *scales)


def forms(model, batch):  # -> Balanced, leaves [L, H, ...]
    """The balanced keys of every head: of the demonstrations of all prompts, beside the queries of
    the query's tokens."""
    rows, params = jax.vmap(lambda prompt: rows_read(model, prompt)[1])(batch), model.params
    keys = jnp.einsum("blnd,lhkd->lhbnk", rows[:, :, :-1], params.w_k)
    queries = jnp.einsum("bld,lhkd->lhbk", rows[:, :, -1], params.w_q)
    keys = keys.reshape(*keys.shape[:2], -1, keys.shape[-1])
    return jax.vmap(jax.vmap(balanced))(keys, queries)


def sizes_at_query(model, prompt, form=None):  # -> |ΔW|² / |h|² [L]
    """Sizes of every layer, its heads together, with keys as ``form`` [L, H, ...] has them.

    Beside the token h that is written to: |ΔW| itself changes with the units of the stream, and
    the function does not. As medians over prompts are taken of them, they are squares still.
    """
    stream, rows = rows_read(model, prompt)
    squares, _, _ = layer_sizes(model.params, rows, form)
    return squares / (stream[:, -1] ** 2).sum(-1)


def shrink(params, factor):
    """The same model, all of whose layers write ``factor`` times as much."""
    return params.replace(w_o=factor * params.w_o)


def measure(spec, config, row):
    """One run's params [P, ...], prompts [B] as in training and noisier ones -> {name: array}."""
    path, batch, noisy = row
    last = jax.tree.map(lambda leaf: leaf[-1], path)
    model = Model(spec, last)
    factors = jnp.array((1.0, *config.shrinkages))
    sizes = partial(sizes_at_query, model, form=forms(model, batch))
    answers = factors[:, None] * model.predict(noisy)[None]
    return {
        "risk": jax.lax.map(lambda params: Model(spec, params).errors(batch).mean(), path),
        "update": jnp.sqrt(jnp.median(jax.vmap(sizes)(batch), axis=0)),
        "shrunk": jax.lax.map(
            lambda factor: Model(spec, shrink(last, factor)).errors(noisy).mean(), factors
        ),
        "answers": ((answers - noisy.y_query[None]) ** 2).mean(1),
    }


def prompts_of(task, config, keys, noisier):  # keys [R] -> [R, B]
    """Prompts of training, their labels' noise so many times as large."""
    task = distribution(task, noise_std=noisier * task.noise_std)
    return jax.lax.map(lambda key: draw(key, task, config.prompts), keys)


def ridge_risk(spec, batch):
    """That of ridge regression with the best penalty."""
    penalty = spec.task.noise_std**2 / max(spec.task.lengths)
    errors = jax.vmap(lambda p: estimators.ridge(p, penalty) @ p.x_query - p.y_query)(batch)
    return (errors**2).mean()


def compute(config: Config, models, *, progress=None, checkpoints=None):
    runs = {norm: models[name] for norm, name in NORMS.items()}
    for norm, each in runs.items():
        refuse_divergence(each.status, f"norms_and_updates: {norm} norms", needs_all=True)
    plain = runs["without"].spec
    keys = jax.random.split(jax.random.key(config.seed), (2, plain.training.seeds))
    batches = prompts_of(plain.task, config, keys[0], 1.0)
    noisy = prompts_of(plain.task, config, keys[1], config.noisier)
    values = []
    for each in runs.values():
        path = jax.tree.map(lambda leaf: np.asarray(leaf, float), each.path)
        measure_runs = jax.jit(partial(jax.lax.map, partial(measure, each.spec, config)))
        rows = measure_runs((path, batches, noisy))
        values.append(jax.tree.map(np.asarray, rows))
    axes = {"risk": "step", "update": "layer", "shrunk": "shrinkage", "answers": "shrinkage"}
    data = {
        name: (("norm", "run", axis), np.stack([each[name] for each in values]))
        for name, axis in axes.items()
    }
    ridge = jax.jit(partial(jax.lax.map, partial(ridge_risk, plain)))(batches)
    pairs = xr.Dataset(
        data | {"ridge": (("run",), np.asarray(ridge))},
        {
            "norm": list(NORMS),
            "step": runs["with"].path_steps,
            "layer": np.arange(1, plain.architecture.depth + 1),
            "shrinkage": [1.0, *config.shrinkages],
        },
    )
    by_shots = measure_by_shots(config.by_shots, models[SOFTMAX], models[STACK])
    return parts.join(pairs, by_shots=by_shots)
