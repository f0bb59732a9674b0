"""Distances of a model's layers to the paths of known algorithms.

A path is weights [S, d], one row for each step of an algorithm on one prompt. The distances are
those of von Oswald et al. (2212.07677): the difference of predictions, and the difference and the
angle of sensitivities ∂ŷ/∂x_query, every layer against every step. ``estimators.gradient_descent``
is a path; the others are below, each a function of (prompt, parameters). Fit the parameters with
``training.fit`` and the loss ``mismatch``, and measure distances on other prompts.
"""

import functools
from collections.abc import Callable
from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import estimators
from lsa_lab.arguments import Real, check_at_least, check_prompt
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import length

Path = Callable[[Prompt, Any], Array]  # (prompt, parameters) -> [S, d]


class Distances(flax.struct.PyTreeNode):
    """Distances of every layer (first axis) to every step of a path (second), on one prompt."""

    prediction: Array  # [L+1, S]  |ŷ_t - w_s·x_query|
    sensitivity: Array  # [L+1, S]  |∂ŷ_t/∂x_query - w_s|
    cosine: Array  # [L+1, S]  of these two; 0 where one vanishes


def distances(
    predictions: Array,  # [L+1]  trace.layer_predictions
    weights: Array,  # [L+1, d]  implicit_gd.implied_weights
    path: Array,  # [S, d]
    x_query: Array,  # [d]
) -> Distances:
    """Return the distances of each layer of a model to each step of an algorithm, on one prompt.

    Average over prompts as von Oswald et al. do, or take the root of the mean square.
    """
    chex.assert_rank(weights, 2, custom_message="weights are [L+1, d]; use jax.vmap for a batch")
    depth, d = weights.shape
    chex.assert_shape(predictions, (depth,), custom_message="one prediction for each layer")
    chex.assert_shape(path, (None, d), custom_message="a path is [S, d], d as the weights")
    chex.assert_shape(x_query, (d,), custom_message="one query [d], d as the weights")
    lengths = jnp.outer(length(weights), length(path))
    cosine = weights @ path.T / jnp.where(lengths == 0, 1, lengths)
    return Distances(
        prediction=jnp.abs(predictions[:, None] - (path @ x_query)[None]),
        sensitivity=length(weights[:, None] - path[None]),
        cosine=cosine,
    )


def mismatch(path: Path, parameters: Any, batch: Prompt, targets: Array) -> Array:  # []
    """Return the mean over prompts [B] of (w_S·x_query - target)², w_S the path's last weights.

    Minimised over parameters with the targets y_query it gives the best algorithm of its kind, with
    a model's predictions the one nearest to the model. It does not depend on earlier steps. Fit
    positive parameters by their logarithm.
    """
    chex.assert_equal_shape([targets, batch.y_query], custom_message="one target for each prompt")

    def error(prompt: Prompt, target: Array) -> Array:
        return (path(prompt, parameters)[-1] @ prompt.x_query - target) ** 2

    return jax.vmap(error)(batch, targets).mean()


def descent_plus_plus(prompt: Prompt, parameters: tuple[Array, Array]) -> Array:  # [S, d]
    """Return the path of GD++ with parameters (step_sizes, gammas), each [S-1]."""
    return estimators.gradient_descent_plus_plus(prompt, *parameters)


def preconditioned_descent(prompt: Prompt, preconditioners: Array) -> Array:  # [S, d]
    """Return the path w_{t+1} = w_t + A_t Xᵀ(y - Xw_t)/n with the matrices A_t [S-1, d, d]."""
    ones = jnp.ones(preconditioners.shape[0], jnp.result_type(preconditioners))
    return estimators.gradient_descent(prompt, ones, preconditioners)


def newton(prompt: Prompt, num_steps: int, scale: Real = 1.0) -> Array:  # [num_steps+1, d]
    """Return the path of least squares by Newton's iteration for the inverse of H = XᵀX/n.

    w_0 = 0, w_t = M_t Xᵀy/n, M_1 = scale H/|H|_F², M_{t+1} = 2 M_t - M_t H M_t, hence
    1 - h m_{t+1} = (1 - h m_t)² for every eigenvalue h. It converges for 0 < scale < 2 (Schulz
    1933; as an algorithm in context: Fu et al. 2310.17086).
    """
    num_steps = check_at_least(num_steps, "num_steps")
    return _newton(check_prompt(prompt), num_steps, scale)


@functools.partial(jax.jit, static_argnames="num_steps")
def _newton(prompt: Prompt, num_steps: int, scale: Real) -> Array:  # [num_steps+1, d]
    n = prompt.x.shape[0]
    hessian, moment = prompt.x.T @ prompt.x / n, prompt.x.T @ prompt.y / n

    def step(inverse: Array, _: None) -> tuple[Array, Array]:
        return 2 * inverse - inverse @ hessian @ inverse, inverse @ moment

    size = (hessian**2).sum()
    first = jnp.asarray(scale, size.dtype) * hessian / jnp.where(size > 0, size, 1)
    _, later = jax.lax.scan(step, first, length=num_steps)
    return jnp.concatenate([jnp.zeros_like(moment)[None], later])


def ridge_path(prompt: Prompt, log_penalties: Array) -> Array:  # [S, d]
    """Return the weights of ridge for penalties exp(log_penalties) [S], usually falling."""
    return jax.vmap(lambda log: estimators.ridge(prompt, jnp.exp(log)))(log_penalties)
