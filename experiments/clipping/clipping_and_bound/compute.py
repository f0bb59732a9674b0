"""Does A2's bound fall as a layer is clipped, and the risk with it?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_and_bound.config import MEASURED, MODULES, Config
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory, upper_bounds
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory.generalization import measured_gap, trajectory_bound


def draw(key, config):  # -> x [B, n + m, d], y [B, n + m]
    """Noisy pairs of a task of its own for each prompt: demonstrations, then the population."""
    task = LinearTask(config.n + config.population, config.d, noise_std=config.noise_std)
    many = jax.vmap(partial(sample, task=task))(jax.random.split(key, config.prompts))
    return many.x, many.y


def measure(params, x, y, config):  # -> [5], as MEASURED
    """Theorem 2's value over the prompts, medians of Σ|G|² and of Σ UB, mean clipped losses."""
    b, n = config.largest_loss, config.n
    w_v, w_q = params.w_pv[:, 0], params.w_kq[:, 0]
    w_k = jnp.broadcast_to(jnp.eye(config.d + 1), w_q.shape)

    def on_prompt(x, y):
        prompt = Prompt(x[:n], y[:n], x[-1], y[-1])
        path = trajectory(params, prompt)
        losses = (y + x @ path.maps[-1, -1, :-1]) ** 2
        gap = measured_gap(losses[n:], losses[:n], 0.0, b)
        return path.updates, gap, upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1]).sum()

    updates, gap, upper = jax.vmap(on_prompt)(x, y)
    bound = trajectory_bound(updates, config.update_noise, b / 2, n)
    total = jnp.median((updates**2).sum((1, 2, 3)))
    return jnp.stack([bound, total, jnp.median(upper), gap.population.mean(), gap.gap.mean()])


def edits(params, config, rates):  # one model -> masks, each [C, ...]
    """Every rate for each layer of each matrix."""
    pieces = clipping.by_singular_value(params, MODULES)
    grid = [(name, t, rate) for name in MODULES for t in range(config.depth) for rate in rates]
    masks = [
        clipping.keep_masks(params, pieces, clipping.Edit(t, name, rate)) for name, t, rate in grid
    ]
    return jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *masks)


def descent(config):
    """The stack that descends by the best step of one layer."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    return constructions.gradient_descent(jnp.full(config.depth, step), config.d)


@partial(jax.jit, static_argnames="config")
def measure_edits(
    key, params, pieces, masks, config
):  # params [R, ...], masks [C, ...] -> [R, C, 5]
    def on_run(row):
        params, pieces, key = row
        x, y = draw(key, config)
        clipped = lambda keep: clipping.rebuild(params, pieces, keep)  # noqa: E731
        return jax.lax.map(lambda keep: measure(clipped(keep), x, y, config), masks)

    return jax.lax.map(on_run, (params, pieces, jax.random.split(key, len(params.w_kq))))


def compute(config: Config, *, progress=None, checkpoints=None):
    """The trained runs come first, then the stack that descends, on several sets of prompts."""
    import xarray as xr

    _, trained, statuses = trained_models.linear_stacks(config, progress)
    constructed = descent(config)

    def together(runs, leaf):
        copies = jnp.broadcast_to(leaf, (config.constructed, *leaf.shape))
        return jnp.concatenate([jnp.asarray(runs), copies])

    params = jax.tree.map(together, trained, constructed)
    rates = (*clipping.every_rate(config.d + 1), clipping.DROP)
    masks = edits(constructed, config, rates)
    pieces = clipping.by_singular_value(params, MODULES)
    values = np.asarray(measure_edits(jax.random.key(config.seed), params, pieces, masks, config))
    values = values.reshape(len(values), len(MODULES), config.depth, len(rates), len(MEASURED))
    count, axes = len(trained.w_kq), ("module", "layer", "rank")
    data = {}
    for i, name in enumerate(MEASURED):
        data[name] = (("run", *axes), values[:count, ..., i])
        data[f"descent_{name}"] = (("prompts", *axes), values[count:, ..., i])
    data["status"] = (("start",), statuses)
    return xr.Dataset(
        data,
        {
            "module": list(MODULES),
            "layer": np.arange(1, config.depth + 1),
            "rank": np.arange(config.d + 1, -1, -1),
        },
    )
