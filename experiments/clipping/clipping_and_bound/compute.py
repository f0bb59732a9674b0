"""As a layer is clipped, does A2's bound fall, and the risk with it?"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.clipping_and_bound.config import MEASURED, MODULES, Config
from experiments.clipping.update_norms import walk
from experiments.models import stacks
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
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
    identity = jnp.broadcast_to(jnp.eye(config.d + 1), params.w_kq[:, 0].shape)
    factored = jnp.stack([params.w_pv[:, 0], identity, params.w_kq[:, 0]])

    def one(x, y):
        prompt = Prompt(x[:n], y[:n], x[-1], y[-1])
        found = trajectory(params, prompt)
        losses = (y + x @ found.maps[-1, -1, :-1]) ** 2
        gap = measured_gap(losses[n:], losses[:n], 0.0, b)
        return found.updates, gap, walk(factored, prompt)[1].sum()

    updates, gap, upper = jax.vmap(one)(x, y)
    bound = trajectory_bound(updates, config.update_noise, b / 2, n)
    total = jnp.median((updates**2).sum((1, 2, 3)))
    return jnp.stack([bound, total, jnp.median(upper), gap.population.mean(), gap.gap.mean()])


def edits(params, config, rates):  # one model -> masks, each [C, ...]
    """Every rate for each layer of each matrix."""
    pieces = clipping.by_singular_value(params, MODULES)
    grid = [(t, name, rate) for name in MODULES for t in range(config.depth) for rate in rates]
    masks = [clipping.keep_masks(params, pieces, clipping.Edit(*cell)) for cell in grid]
    return jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *masks)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack = replace(stacks.stack_of("linear", config), noise_std=config.noise_std, clip=config.clip)
    run = stacks.trained(stack, config.runs, config.training_seed, "linear stacks", progress)
    whole = np.array([one.kind != "diverged" for one in run.status])
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)  # the best of one layer
    descent = constructions.gradient_descent(jnp.full(config.depth, step), config.d)

    def together(ours, one):
        ours = jnp.asarray(ours, float)[whole]
        return jnp.concatenate([ours, jnp.broadcast_to(one, (config.constructed, *one.shape))])

    params = jax.tree.map(together, run.params, descent)
    rates = (*clipping.every_rate(config.d + 1), clipping.DROP)
    table = edits(descent, config, rates)

    @jax.jit
    def everything(key, params, pieces):  # [R, C, 5]
        keys = jax.random.split(key, len(params.w_kq))

        def one(row):
            params, pieces, key = row
            x, y = draw(key, config)
            cut = lambda keep: measure(clipping.rebuild(params, pieces, keep), x, y, config)  # noqa: E731
            return jax.lax.map(cut, table)

        return jax.lax.map(one, (params, pieces, keys))

    pieces = clipping.by_singular_value(params, MODULES)
    found = np.asarray(everything(jax.random.key(config.seed), params, pieces))
    found = found.reshape(len(found), len(MODULES), config.depth, len(rates), len(MEASURED))
    count, data = int(whole.sum()), {}
    axes = ("module", "layer", "rank")
    for i, name in enumerate(MEASURED):
        data[name] = (("run", *axes), found[:count, ..., i])
        data[f"descent_{name}"] = (("prompts", *axes), found[count:, ..., i])
    data["status"] = (("start",), [str(one) for one in run.status])
    return xr.Dataset(
        data,
        {
            "module": list(MODULES),
            "layer": np.arange(1, config.depth + 1),
            "rank": np.arange(config.d + 1, -1, -1),
        },
    )
