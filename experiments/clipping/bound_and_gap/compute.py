"""A2's bound and the generalisation gap: of stacks that descend, and of trained stacks, clipped."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import xarray as xr

from experiments.clipping.bound_and_gap.clipped import clip_all
from experiments.clipping.bound_and_gap.config import GRID, Config
from lsa_lab import prompts
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.estimators import gradient_descent
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights
from lsa_lab.theory.generalization import measured_gap, trajectory_bound


def draw(key, config, count):  # -> x [G, B, N + m, d], y and noise [G, B, N + m]
    """Pairs of one task w ~ N(0, I) for each group, with noise of variance 1 still to be added.

    The first N are demonstrations, the others the population; all places of the grid share them.
    """
    task = LinearTask(max(config.shots) + config.population, config.d)
    *keys, key_noise = jax.random.split(key, 3)

    def group(key_weights, key):
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        return jax.vmap(partial(sample, task=same))(jax.random.split(key, count))

    both = tuple(jax.random.split(k, config.groups) for k in keys)
    pairs = jax.lax.map(lambda keys: group(*keys), both)
    return pairs.x, pairs.y, jax.random.normal(key_noise, pairs.y.shape)


def divide(x, y, n, largest):  # -> Prompt, x [m, d], y [m]
    """The first n pairs, each N/n times, which leaves every mean over them as it is; the others."""
    which = jnp.arange(largest) % n.astype(int)
    return Prompt(x[which], y[which], x[-1], y[-1]), x[largest:], y[largest:]


def noisy_descent(params, second_moment, noise):  # [L, e, e] -> [e, e], [L, e, e]
    """W_L and the G_t of W_t = W_{t-1} + G_t(W_{t-1}) + noise_t, Eq. 4 of A2 with C = cI."""
    w, updates = jnp.eye(len(second_moment)), []
    for w_kq, w_pv, noise_t in zip(params.w_kq[:, 0], params.w_pv[:, 0], noise, strict=True):
        updates.append(w_pv @ w @ second_moment @ w.T @ w_kq @ w)
        w = w + updates[-1] + noise_t
    return w, jnp.stack(updates)


def best_step(noise, n, active, tuning, config):  # -> []
    """The step size with the least risk on the tuning prompts."""

    def risk(step, x, y, eps):
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        return ((y - x @ gradient_descent(prompt, step * active)[-1]) ** 2).mean()

    steps = jnp.linspace(0.1, 1.5, config.step_sizes)
    risks = jax.vmap(jax.vmap(risk, (None, 0, 0, 0)), (None, 0, 0, 0))
    return steps[jnp.argmin(jax.lax.map(lambda step: risks(step, *tuning).mean(), steps))]


def spread_bound(updates, subgaussian, n):  # [B, L, e, e] -> []
    """The bound at c_t = tr Cov(G_t)/e², the spread over prompts; idle layers add nothing."""
    entries = updates.shape[-1] ** 2
    size = (updates**2).sum((2, 3)).mean(0)
    spread = ((updates - updates.mean(0, keepdims=True)) ** 2).sum((0, 2, 3)) / (len(updates) - 1)
    ratio = jnp.where(spread > 0, size / jnp.where(spread > 0, spread, 1.0), 0.0)
    return subgaussian * jnp.sqrt(entries * jnp.log1p(ratio).sum() / n)


def measure(noise, n, depth, tuning, data, normal, config):  # -> {name: [G] or [c, G]}
    """Gaps and bounds of each group, without noise in the updates and with, for every c."""
    # Steps of size zero, layers that do nothing, fill up the deepest stack.
    active = jnp.where(jnp.arange(max(config.depths), dtype=float) < depth, 1.0, 0.0)
    step, b = best_step(noise, n, active, tuning, config), config.largest_loss
    params = constructions.gradient_descent(step * active, config.d)
    levels = jnp.asarray(config.update_noises)

    def measure_prompt(x, y, eps, normal):
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        moment = prompts.second_moment(prompt)

        def risks(w):  # [2]: population, demonstrations
            losses = [(y + x @ w[-1, :-1]) ** 2 for x, y in ((x, y), (prompt.x, prompt.y))]
            gap = measured_gap(*losses, 0.0, b)
            return jnp.stack([gap.population, gap.empirical])

        def add_noise(c):
            w, updates = noisy_descent(params, moment, c**0.5 * active[:, None, None] * normal)
            return risks(w), updates

        path = trajectory(params, prompt)
        return (risks(path.maps[-1]), path.updates), jax.vmap(add_noise, out_axes=1)(levels)

    bound = partial(trajectory_bound, subgaussian=b / 2, n=n)

    def measure_group(*group):
        (exact, updates), (noisy, noisy_updates) = jax.vmap(measure_prompt)(*group)
        exact, noisy = exact.mean(0), noisy.mean(0)  # [2], [2, c]
        return {
            "gap": exact[0] - exact[1],
            "spread_bound": spread_bound(updates, b / 2, n),
            "bound": jax.vmap(bound, (None, 0))(updates, levels),
            "noisy_gap": noisy[0] - noisy[1],
            "noisy_bound": jax.vmap(bound)(jnp.moveaxis(noisy_updates, 2, 0), levels),
            "noise_cost": jnp.abs(noisy - exact[:, None]).sum(0),
        }

    # Some at a time, for the memory.
    every = jax.lax.map(lambda group: measure_group(*group), (*data, normal), batch_size=8)
    return {name: values.T for name, values in every.items()}


def compute(config: Config, models, *, progress=None, checkpoints=None):
    @jax.jit
    def everywhere(key, places):
        keys = [jax.random.fold_in(key, tag) for tag in range(3)]
        tuning = draw(keys[0], config, config.tuning_prompts)
        data = draw(keys[1], config, config.prompts)
        shape = (*data[1].shape[:2], max(config.depths), config.d + 1, config.d + 1)
        normal = jax.random.normal(keys[2], shape)
        at = partial(measure, tuning=tuning, data=data, normal=normal, config=config)
        return jax.lax.map(lambda place: at(*place), tuple(places.T))

    grid = (config.noises, config.shots, config.depths)
    places = jnp.asarray(list(itertools.product(*grid)), float)
    data = {}
    for name, values in everywhere(jax.random.key(config.seed), places).items():
        axes = (*GRID, "update_noise", "group") if values.ndim == 3 else (*GRID, "group")
        # In single precision, for the size of the file.
        data[name] = (axes, values.reshape(*map(len, grid), *values.shape[1:]).astype("float32"))
    axes = zip((*GRID, "update_noise"), (*grid, config.update_noises), strict=True)
    descent = xr.Dataset(data, {name: list(values) for name, values in axes})
    return parts.join(descent, clipped=clip_all(config, models["linear stacks"]))
