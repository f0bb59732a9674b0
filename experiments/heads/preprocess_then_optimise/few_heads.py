"""The risks of descent on the features of d heads and of fewer, alone and beside raw covariates."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lsa_lab import estimators
from lsa_lab.tasks.linear import LinearTask, sample

TOGETHER = 128  # prompts: whole paths of more of them would need gigabytes


def measure(config, sparsity: int, heads, groups):  # groups [H, d, d]
    """The part few_heads: groups have a row for each head, with ones at its coordinates."""
    d = groups.shape[-1]
    task = LinearTask(
        config.n, d, sparsity, config.noise_std, weight_std=sparsity**-0.5, signal="flat"
    )
    return xr.Dataset(
        {"risk": (("features", "run", "used"), risks(config, task, jnp.asarray(groups)))},
        {"features": ["alone", "beside raw"], "used": list(heads)},
    )


def risks(config, task: LinearTask, groups):  # -> [features, R, heads]
    """The risk of descent on features of H heads; all that is free is chosen on other prompts.

    Free are the step size and the number of steps; beside raw covariates, how much of them.
    """

    def errors(key):  # -> [heads, shares, rates, steps+1]
        prompt = sample(key, task)
        return (_paths(config, groups, prompt) - prompt.y_query) ** 2

    def best(halves):  # [chosen on, judged on; heads, ...] -> [heads]
        flat = halves.reshape(*halves.shape[:2], -1)
        place = jnp.argmin(flat[0], axis=-1, keepdims=True)
        return jnp.take_along_axis(flat[1], place, axis=-1)[:, 0]

    @jax.jit
    def all_runs(key):
        def risks_of_run(key):
            keys = jax.random.split(key, 2 * config.prompts)
            squares = jax.lax.map(errors, keys, batch_size=min(TOGETHER, len(keys)))
            halves = squares.reshape(2, config.prompts, *squares.shape[1:]).mean(1)
            return jnp.stack([best(halves[:, :, 0]), best(halves)])

        return jax.lax.map(risks_of_run, jax.random.split(key, config.runs))

    values = np.asarray(all_runs(jax.random.key(config.seed)))
    if not np.isfinite(values).all():
        raise ValueError("a risk is not finite: choose step sizes below 2")
    return np.moveaxis(values, 1, 0)


def _paths(config, groups, prompt):  # -> [heads, shares, rates, steps+1]
    """Predictions of descent on [√s x, √(1-s) Fx] with step sizes c/λ, s the raw covariates' share.

    Row g of F is Xᵀy/n on the coordinates of head g, else 0. x and Fx are in units in which their
    second moments have largest eigenvalue 1, and λ is that of both together. s = 0: the features,
    and up to the step size the descent, of ``constructions.preprocess_then_optimise``; else its
    mixed rule.
    """

    def path(group, share, rate):
        matrix = group * (prompt.y @ prompt.x)[None] / config.n  # [d, d]
        raw = jnp.eye(len(matrix), dtype=matrix.dtype)
        parts = [jnp.sqrt(share) * _rescaled(prompt, raw)]
        parts.append(jnp.sqrt(1 - share) * _rescaled(prompt, matrix))
        both = jnp.concatenate(parts)
        features = prompt.replace(x=prompt.x @ both.T, x_query=both @ prompt.x_query)
        steps = jnp.full(config.steps, rate / _largest(features.x))
        return estimators.gradient_descent(features, steps) @ features.x_query

    each_rate = jax.vmap(path, (None, None, 0))
    each_share = jax.vmap(each_rate, (None, 0, None))
    each_group = jax.vmap(each_share, (0, None, None))
    return each_group(groups, jnp.array([0.0, *config.shares]), jnp.asarray(config.step_sizes))


def _rescaled(prompt, matrix):  # [k, d]
    return matrix / jnp.sqrt(_largest(prompt.x @ matrix.T))


def _largest(x):  # []
    return jnp.linalg.eigvalsh(x.T @ x / len(x))[-1]
