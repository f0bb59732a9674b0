"""A2's bound, the risk and the gap of trained stacks, at every truncation of one matrix."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.bound_and_gap.config import MODULES, Config
from experiments.clipping.clipped_models import spec_of
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.models.matrices import matrices
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory.generalization import measured_gap, trajectory_bound


def draw_pairs(key, config):  # -> x [B, n + m, d], y [B, n + m]
    """Noisy pairs of a task of its own for each prompt: demonstrations, then the population."""
    task, sizes = spec_of(config).task, config.clipped
    pairs = max(task.lengths) + sizes.population
    task = LinearTask(pairs, task.d, noise_std=task.noise_std)
    many = jax.vmap(partial(sample, task=task))(jax.random.split(key, sizes.prompts))
    return many.x, many.y


def measure_stack(params, x, y, config):  # -> {name: []}, the bound [c]
    """Theorem 2's value over the prompts, and the mean clipped losses."""
    b, n = config.largest_loss, max(spec_of(config).task.lengths)

    def measure_prompt(x, y):
        path = trajectory(params, Prompt(x[:n], y[:n], x[-1], y[-1]))
        losses = (y + x @ path.maps[-1, -1, :-1]) ** 2
        return path.updates, measured_gap(losses[n:], losses[:n], 0.0, b)

    updates, gap = jax.vmap(measure_prompt)(x, y)
    levels = jnp.asarray(config.update_noises)
    return {
        "bound": jax.vmap(lambda c: trajectory_bound(updates, c, b / 2, n))(levels),
        "risk": gap.population.mean(),
        "gap": gap.gap.mean(),
    }


def edits(params, rates):  # one model -> ranks, each [C, L]
    """Every rate for each layer of each matrix."""
    everything = clipping.kept_ranks(params, clipping.Edit(0, MODULES, 0.0))
    layers = range(len(params.w_kq))
    grid = [clipping.Edit(t, name, rate) for name in MODULES for t in layers for rate in rates]
    kept = [everything | clipping.kept_ranks(params, edit) for edit in grid]
    return jax.tree.map(lambda *ranks: jnp.asarray(np.stack(ranks)), *kept)


def random_edit(key, whole, clipped):
    """Every matrix moved at random as far as clipping moves it, |W' - W|_F = |W_r - W|_F."""

    def move(key, matrix, clipped):  # [..., e, e] twice
        noise = jax.random.normal(key, matrix.shape, matrix.dtype)
        size = lambda each: jnp.linalg.norm(each, axis=(-2, -1), keepdims=True)  # noqa: E731
        return matrix + noise * size(clipped - matrix) / size(noise)

    leaves, tree = jax.tree.flatten(whole)
    keys = list(jax.random.split(key, len(leaves)))
    return jax.tree.map(move, jax.tree.unflatten(tree, keys), whole, clipped)


@partial(jax.jit, static_argnames="config")
def measure_edits(keys, params, pieces, table, config):  # params [R, ...] -> {name: [R, C, ...]}
    """What every truncation does, and the risk after as many random edits that are as large."""
    keys = [jax.random.split(key, len(params.w_kq)) for key in keys]
    count = len(jax.tree.leaves(table)[0])

    def measure_run(row):
        params, pieces, key, key_noise = row
        x, y = draw_pairs(key, config)

        def measure_edit(row):
            kept, key = row
            clipped = clipping.rebuild(params, pieces, kept)
            other = measure_stack(random_edit(key, params, clipped), x, y, config)
            return measure_stack(clipped, x, y, config) | {"random_risk": other["risk"]}

        return jax.lax.map(measure_edit, (table, jax.random.split(key_noise, count)))

    return jax.lax.map(measure_run, (params, pieces, *keys))


def clip_all(config: Config, finished):
    """The Dataset of every truncation."""
    spec, params = spec_of(config), trained_models.float64_params(finished)
    params = jax.tree.map(jnp.asarray, params)
    rates = (*clipping.every_rate(spec.token_width), clipping.DROP)
    table = edits(jax.tree.map(lambda leaf: leaf[0], params), rates)
    stacks = jax.vmap(lambda params: matrices(params, MODULES))(params)
    pieces = clipping.svd_terms(stacks)
    key_edits, key_ridge, key_noise = jax.random.split(jax.random.key(config.clipped.seed), 3)
    shape = (len(MODULES), spec.architecture.depth, len(rates))
    data = {"status": (("start",), [str(status) for status in finished.status])}
    edited = measure_edits((key_edits, key_noise), params, pieces, table, config)
    for name, values in edited.items():
        values = np.asarray(values).reshape(len(values), *shape, *values.shape[2:])
        data[name] = (("run", "module", "layer", "rank", "update_noise")[: values.ndim], values)
    over_ridge = trained_models.risk_over_ridge(key_ridge, spec, params)
    data["over_ridge"] = (("run",), np.asarray(over_ridge))
    return xr.Dataset(
        data,
        {
            "module": list(MODULES),
            "layer": np.arange(1, spec.architecture.depth + 1),
            "rank": np.arange(spec.token_width, -1, -1),
            "update_noise": list(config.update_noises),
        },
    )
