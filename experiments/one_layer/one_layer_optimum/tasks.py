"""The three tasks of `one_layer_optimum`, and the best layer for each in closed form."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import optimum


def tasks(config):  # -> [3, d, d], [3]
    """Λ and σ² of each task; anisotropic is U diag(1, 1, 1/2, 1/4, 1, ...) Uᵀ, U fixed."""
    d = config.d
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    rotated = rotation * np.resize([1.0, 1.0, 0.5, 0.25, 1.0], d) @ rotation.T
    covariances = jnp.asarray(np.stack([np.eye(d), rotated, np.eye(d)]))
    return covariances, jnp.array([0.0, 0.0, config.noise_var])


def best_layer(task, n):  # -> [d, d], []
    """A* of the task (Λ, σ²), and its risk."""
    covariance, noise_var = task
    hypotheses = (covariance, jnp.eye(len(covariance)), n, noise_var)
    matrix = optimum.one_layer(*hypotheses)
    return matrix, optimum.one_layer_risk(matrix, *hypotheses)


def draw(key, task, n, size):
    """Prompts [size] of the task (Λ, σ²), in its precision."""
    covariance, noise_std = task[0], jnp.sqrt(task[1])
    linear = LinearTask(n, len(covariance), noise_std=noise_std, covariance=covariance)
    linear = linear.replace(dtype=covariance.dtype)
    return jax.vmap(partial(sample, task=linear))(jax.random.split(key, size))
