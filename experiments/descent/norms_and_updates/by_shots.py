"""Sizes of the updates of trained layers, softmax and linear, by the number of demonstrations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.norms_and_updates.config import SIZES, ByShots
from experiments.descent.norms_and_updates.softmax_sizes import layer_sizes
from experiments.models.model import Model
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators
from lsa_lab.analyses.clipping import truncate
from lsa_lab.analyses.implicit_gd import trajectory


def sizes_by_name(model, clipped, prompt):  # -> {name: [L]}, squares
    """The sizes of every layer's update at the query; ``clipped`` w_v [L]."""
    stream, params = model.forward(prompt).stream[:-1], model.params  # [L, T, D]
    update, unnormalised, written = layer_sizes(params, stream)
    _, _, after = layer_sizes(params.replace(w_v=clipped), stream)
    length, change = (written**2).sum(1), ((written - after) ** 2).sum(1)
    by_name = (update, unnormalised, length, change, change / length)
    return dict(zip(SIZES, by_name, strict=True))


def typical(squares):  # [B, L] -> [L]
    """The median over prompts of a size, from its squares."""
    return jnp.sqrt(jnp.median(squares, axis=0))


def first(batch, n):
    return batch.replace(x=batch.x[:, :n], y=batch.y[:, :n])


def clipped_values(params, rate):  # [R, L, H, k, D] -> the same
    """W_V of every layer, its heads one matrix as in A2, without its least singular values."""
    shape = params.w_v.shape
    stacked = params.w_v.reshape(*shape[:2], -1, shape[-1])
    return truncate(stacked, rate).reshape(shape)


def measure_softmax(key, spec, params, config):
    """Typical values [R, shots, L] of every size, and at the shots of training the excess risks
    [R, 2] of the model and of ridge regression."""
    n, runs = max(spec.task.lengths), len(params.w_q)
    shots = [round(n * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))

    def run(row):
        params, clipped, key = row
        model, batch = Model(spec, params), draw(key, task, config.prompts)
        measure = jax.vmap(partial(sizes_by_name, model, clipped))
        by_shots = [measure(first(batch, n)) for n in shots]
        roots = jax.tree.map(lambda *squares: jnp.stack([typical(x) for x in squares]), *by_shots)
        own = first(batch, n)
        ridge = jax.vmap(lambda p: estimators.ridge(p, spec.task.noise_std**2 / n) @ p.x_query)(own)
        risks = jnp.stack([model.errors(own).mean(), ((ridge - own.y_query) ** 2).mean()])
        return roots, risks

    rows = params, clipped_values(params, config.rate), jax.random.split(key, runs)
    return jax.jit(partial(jax.lax.map, run))(rows)


def measure_stacks(key, spec, params, config):  # -> [R, shots, L]
    """The typical |G_t|."""
    shots = [round(max(spec.task.lengths) * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))

    def run(row):
        params, key = row
        batch = draw(key, task, config.prompts)
        updates = [jax.vmap(partial(trajectory, params))(first(batch, n)).updates for n in shots]
        return jnp.stack([typical((x**2).sum((2, 3))) for x in updates])

    keys = jax.random.split(key, len(params.w_pv))
    return jax.jit(partial(jax.lax.map, run))((params, keys))


def measure_by_shots(config: ByShots, softmax, stacks):
    """The Dataset of both kinds of trained runs."""
    import xarray as xr

    keys = jax.random.split(jax.random.key(config.seed), 2)
    params = [runs.models(seeds=runs.finished[0]).in_float64().params for runs in (softmax, stacks)]
    sizes, risks = measure_softmax(keys[0], softmax.spec, params[0], config)
    linear = measure_stacks(keys[1], stacks.spec, params[1], config)
    data = {
        "size": (("kind", "run", "factor", "layer"), np.stack([*sizes.values()])),
        "risk": (("run", "rule"), np.asarray(risks)),
        "linear": (("linear_run", "factor", "linear_layer"), np.asarray(linear)),
        "taken": (("started",), softmax.taken[0]),
        "linear_taken": (("linear_started",), stacks.taken[0]),
    }
    coordinates = {
        "kind": list(sizes),
        "factor": list(config.factors),
        "layer": np.arange(1, softmax.spec.architecture.depth + 1),
        "linear_layer": np.arange(1, stacks.spec.architecture.depth + 1),
        "rule": ["model", "ridge"],
    }
    return xr.Dataset(data, coordinates)
