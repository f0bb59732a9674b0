"""A2's bound and the generalisation gap of stacks that descend, on the whole grid."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp

from experiments.descent.bound_and_gap.config import GRID, Config
from lsa_lab import prompts
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.estimators import gradient_descent
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
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

    pairs = jax.vmap(group)(*(jax.random.split(k, config.groups) for k in keys))
    return pairs.x, pairs.y, jax.random.normal(key_noise, pairs.y.shape)


def divide(x, y, n, largest):  # -> Prompt, x [m, d], y [m]
    """The first n pairs, each N/n times, which leaves every mean over them as it is; the others."""
    which = jnp.arange(largest) % n.astype(int)
    return Prompt(x[which], y[which], x[-1], y[-1]), x[largest:], y[largest:]


def noisy_map(params, second_moment, noise):  # [L, e, e] -> [e, e]
    """W_t = W_{t-1} + G_t(W_{t-1}) + noise_t, Eq. 4 of A2 with C = cI."""
    w = jnp.eye(len(second_moment))
    for w_kq, w_pv, noise_t in zip(params.w_kq[:, 0], params.w_pv[:, 0], noise, strict=True):
        w = w + w_pv @ w @ second_moment @ w.T @ w_kq @ w + noise_t
    return w


def best_step(noise, n, active, tuning, config):  # -> []
    """The step size with the least risk on the tuning prompts."""

    def risk(step, x, y, eps):
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        return ((y - x @ gradient_descent(prompt, step * active)[-1]) ** 2).mean()

    steps = jnp.linspace(0.1, 1.5, config.step_sizes)
    risks = jax.vmap(jax.vmap(risk, (None, 0, 0, 0)), (None, 0, 0, 0))
    return steps[jnp.argmin(jax.lax.map(lambda step: risks(step, *tuning).mean(), steps))]


def measure(noise, n, depth, tuning, data, normal, config):  # -> [G, 2], [2, 1 + c, G]
    """Gaps of each group without and with noise in the updates; bounds with g = 0 and g the mean,
    for every c."""
    # Steps of size zero, layers that do nothing, fill up the deepest stack.
    active = jnp.where(jnp.arange(max(config.depths), dtype=float) < depth, 1.0, 0.0)
    step, b = best_step(noise, n, active, tuning, config), config.largest_loss
    params = constructions.gradient_descent(step * active, config.d)

    def gaps_and_updates(x, y, eps, normal):  # -> [2], [L, e, e]
        prompt, x, y = divide(x, y + noise * eps, n, max(config.shots))
        path = trajectory(params, prompt)
        extra = config.update_noise**0.5 * active[:, None, None] * normal
        last = (path.maps[-1], noisy_map(params, prompts.second_moment(prompt), extra))
        pairs = ((x, y), (prompt.x, prompt.y))
        losses = [[(y + x @ w[-1, :-1]) ** 2 for x, y in pairs] for w in last]
        return jnp.stack([measured_gap(*both, 0.0, b).gap for both in losses]), path.updates

    gaps, updates = jax.vmap(jax.vmap(gaps_and_updates))(*data, normal)  # [G, B, ...]

    def bounds(noise_cov, centred):  # [G]
        bound = partial(trajectory_bound, subgaussian=b / 2, n=n, centred=centred)
        return jax.vmap(partial(bound, noise_cov=noise_cov))(updates)

    levels = jnp.asarray((config.update_noise, *config.other_noises))
    both = [jax.vmap(partial(bounds, centred=centred))(levels) for centred in (False, True)]
    return gaps.mean(1), jnp.stack(both)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

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
    measured = everywhere(jax.random.key(config.seed), places)
    gaps, bounds = (leaf.reshape(*map(len, grid), *leaf.shape[1:]) for leaf in measured)
    axes = (*GRID, "group")
    return xr.Dataset(
        {
            "gap": (axes, gaps[..., 0]),
            "noisy_gap": (axes, gaps[..., 1]),
            "bound": (axes, bounds[..., 0, 0, :]),
            "centred_bound": (axes, bounds[..., 1, 0, :]),
            "other_bound": ((*GRID, "update_noise", "group"), bounds[..., 0, 1:, :]),
        },
        dict(zip((*GRID, "update_noise"), map(list, (*grid, config.other_noises)), strict=True)),
    )
