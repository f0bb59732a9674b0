"""Does A2's bound lie above the generalisation gap, and does it rank settings as the gap does?"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp

from experiments.descent.bound_and_gap.config import PLACE, Config
from lsa_lab import prompts
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.estimators import gradient_descent
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights
from lsa_lab.theory.generalization import measured_gap, trajectory_bound


def draw(key, config, count):  # -> x [G, B, N + m, d], y and noise [G, B, N + m]
    """Pairs of one task w ~ N(0, I) for each group, with noise of variance 1 still to be added.

    The first N are demonstrations, the others the population; all settings share them.
    """
    task = LinearTask(max(config.shots) + config.population, config.d)
    *keys, key_noise = jax.random.split(key, 3)

    def group(key_weights, key):
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        return jax.vmap(partial(sample, task=same))(jax.random.split(key, count))

    found = jax.vmap(group)(*(jax.random.split(k, config.groups) for k in keys))
    return found.x, found.y, jax.random.normal(key_noise, found.y.shape)


def divide(x, y, n, largest):  # -> Prompt, x [m, d], y [m]
    """The first n pairs, each N/n times, which leaves every mean over them as it is; the others."""
    which = jnp.arange(largest) % n.astype(int)
    return Prompt(x[which], y[which], x[-1], y[-1]), x[largest:], y[largest:]


def noisy_map(params, second_moment, noise):  # [L, e, e] -> [e, e]
    """W_t = W_{t-1} + G_t(W_{t-1}) + noise_t, Eq. 4 of A2 with C = cI."""
    w = jnp.eye(len(second_moment))
    for w_kq, w_pv, some in zip(params.w_kq[:, 0], params.w_pv[:, 0], noise, strict=True):
        w = w + w_pv @ w @ second_moment @ w.T @ w_kq @ w + some
    return w


def measure(noise, n, depth, tuning, data, normal, config):
    """By group: gaps [G, 2] without and with noise in the updates, bounds [2, 1 + c, G]."""
    # Steps of size zero, layers that do nothing, fill up the deepest stack.
    active = jnp.where(jnp.arange(max(config.depths), dtype=float) < depth, 1.0, 0.0)
    b = config.largest_loss

    def risk(step, x, y, eps):
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        return ((y - x @ gradient_descent(prompt, step * active)[-1]) ** 2).mean()

    steps = jnp.linspace(0.1, 1.5, config.step_sizes)
    risks = jax.vmap(jax.vmap(risk, (None, 0, 0, 0)), (None, 0, 0, 0))
    best = steps[jnp.argmin(jax.lax.map(lambda step: risks(step, *tuning).mean(), steps))]
    params = constructions.gradient_descent(best * active, config.d)

    def one(x, y, eps, normal):
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        found = trajectory(params, prompt)
        extra = config.update_noise**0.5 * active[:, None, None] * normal
        last = (found.maps[-1], noisy_map(params, prompts.second_moment(prompt), extra))
        pairs = ((x, y), (prompt.x, prompt.y))
        losses = [[(y + x @ w[-1, :-1]) ** 2 for x, y in pairs] for w in last]
        return jnp.stack([measured_gap(*both, 0.0, b).gap for both in losses]), found.updates

    gaps, updates = jax.vmap(jax.vmap(one))(*data, normal)  # [G, B, 2], [G, B, L, e, e]

    def bounds(noise_cov, centred):  # [G]
        bound = partial(trajectory_bound, subgaussian=b / 2, n=n, centred=centred)
        return jax.vmap(partial(bound, noise_cov=noise_cov))(updates)

    levels = jnp.asarray((config.update_noise, *config.other_noises))
    both = [jax.vmap(partial(bounds, centred=centred))(levels) for centred in (False, True)]
    return gaps.mean(1), jnp.stack(both)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @jax.jit
    def everywhere(key, settings):
        keys = [jax.random.fold_in(key, tag) for tag in range(3)]
        tuning = draw(keys[0], config, config.tuning_prompts)
        data = draw(keys[1], config, config.prompts)
        shape = (*data[1].shape[:2], max(config.depths), config.d + 1, config.d + 1)
        normal = jax.random.normal(keys[2], shape)
        one = partial(measure, tuning=tuning, data=data, normal=normal, config=config)
        return jax.lax.map(lambda setting: one(*setting), tuple(settings.T))

    grid = (config.noises, config.shots, config.depths)
    settings = jnp.asarray(list(itertools.product(*grid)), float)
    found = everywhere(jax.random.key(config.seed), settings)
    gaps, bounds = (leaf.reshape(*map(len, grid), *leaf.shape[1:]) for leaf in found)
    axes = (*PLACE, "group")
    return xr.Dataset(
        {
            "gap": (axes, gaps[..., 0]),
            "noisy_gap": (axes, gaps[..., 1]),
            "bound": (axes, bounds[..., 0, 0, :]),
            "centred_bound": (axes, bounds[..., 1, 0, :]),
            "other_bound": ((*PLACE, "update_noise", "group"), bounds[..., 0, 1:, :]),
        },
        dict(zip((*PLACE, "update_noise"), map(list, (*grid, config.other_noises)), strict=True)),
    )
