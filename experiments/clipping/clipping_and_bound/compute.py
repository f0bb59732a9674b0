"""Does A2's bound fall as a layer is clipped, and the risk with it?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_and_bound.config import MODULES, Config
from experiments.clipping.transformers import spec_of
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory, upper_bounds
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory.generalization import measured_gap, trajectory_bound


def draw(key, config):  # -> x [B, n + m, d], y [B, n + m]
    """Noisy pairs of a task of its own for each prompt: demonstrations, then the population."""
    task = spec_of(config).task
    pairs = max(task.lengths) + config.population
    task = LinearTask(pairs, task.d, noise_std=task.noise_std)
    many = jax.vmap(partial(sample, task=task))(jax.random.split(key, config.prompts))
    return many.x, many.y


def measure(params, x, y, config):  # -> {name: []}, the bound [c]
    """Theorem 2's value over the prompts, medians of Σ|G|² and of Σ UB, mean clipped losses."""
    b, n = config.largest_loss, max(spec_of(config).task.lengths)
    w_v, w_q = params.w_pv[:, 0], params.w_kq[:, 0]
    w_k = jnp.broadcast_to(jnp.eye(x.shape[-1] + 1), w_q.shape)

    def on_prompt(x, y):
        prompt = Prompt(x[:n], y[:n], x[-1], y[-1])
        path = trajectory(params, prompt)
        losses = (y + x @ path.maps[-1, -1, :-1]) ** 2
        gap = measured_gap(losses[n:], losses[:n], 0.0, b)
        return path.updates, gap, upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1]).sum()

    updates, gap, upper = jax.vmap(on_prompt)(x, y)
    levels = jnp.asarray(config.update_noises)
    return {
        "bound": jax.vmap(lambda c: trajectory_bound(updates, c, b / 2, n))(levels),
        "sum": jnp.median((updates**2).sum((1, 2, 3))),
        "upper": jnp.median(upper),
        "risk": gap.population.mean(),
        "gap": gap.gap.mean(),
    }


def edits(params, rates):  # one model -> masks, each [C, ...]
    """Every rate for each layer of each matrix."""
    pieces = clipping.by_singular_value(params, MODULES)
    layers = range(len(params.w_kq))
    grid = [(name, t, rate) for name in MODULES for t in layers for rate in rates]
    masks = [
        clipping.keep_masks(params, pieces, clipping.Edit(t, name, rate)) for name, t, rate in grid
    ]
    return jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *masks)


def descent(spec):
    """The stack as large as the Spec's that descends by the best step of one layer."""
    task = spec.task
    step = 1 / (1 + (1 + task.d + task.noise_std**2) / max(task.lengths))
    return constructions.gradient_descent(jnp.full(spec.architecture.depth, step), task.d)


@partial(jax.jit, static_argnames="config")
def measure_edits(key, params, pieces, masks, config):  # params [R, ...] -> {name: [R, C, ...]}
    def on_run(row):
        params, pieces, key = row
        x, y = draw(key, config)
        clipped = lambda keep: clipping.rebuild(params, pieces, keep)  # noqa: E731
        return jax.lax.map(lambda keep: measure(clipped(keep), x, y, config), masks)

    return jax.lax.map(on_run, (params, pieces, jax.random.split(key, len(params.w_kq))))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    """The trained runs come first, then the stack that descends, on several sets of prompts."""
    import xarray as xr

    spec, finished = spec_of(config), models["linear stacks"]
    trained, constructed = trained_models.float64_params(finished), descent(spec)

    def together(runs, leaf):
        copies = jnp.broadcast_to(leaf, (config.constructed, *leaf.shape))
        return jnp.concatenate([jnp.asarray(runs), copies])

    params = jax.tree.map(together, trained, constructed)
    rates = (*clipping.every_rate(spec.token_width), clipping.DROP)
    masks = edits(constructed, rates)
    pieces = clipping.by_singular_value(params, MODULES)
    key_edits, key_ridge = jax.random.split(jax.random.key(config.seed))
    measured = measure_edits(key_edits, params, pieces, masks, config)
    count, shape = len(trained.w_kq), (len(MODULES), spec.architecture.depth, len(rates))
    data = {"status": (("start",), [str(status) for status in finished.status])}
    for name, values in measured.items():
        values = np.asarray(values).reshape(len(values), *shape, *values.shape[2:])
        axes = ("module", "layer", "rank", "update_noise")[: values.ndim - 1]
        data[name] = (("run", *axes), values[:count])
        data[f"descent_{name}"] = (("prompts", *axes), values[count:])
    over_ridge = trained_models.risk_over_ridge(key_ridge, spec, trained)
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
