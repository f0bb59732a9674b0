"""Which algorithm a model's layers resemble: distances to the paths of known ones.

A path is weights [S, d], one row for each step of an algorithm on one prompt. The measures are
those of von Oswald et al. (2212.07677): the difference of predictions, and the difference and the
angle of sensitivities ∂ŷ/∂x_query, every layer against every step. ``estimators.gradient_descent``
is a path; the others are below, each a function of (prompt, parameters). Fit these on prompts
of their own with ``training.fit``, ``mismatch`` as the loss, and measure on others.
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
from lsa_lab.arguments import Real, admit, check_at_least
from lsa_lab.prompts import Prompt, length

Path = Callable[[Prompt, Any], Array]  # (prompt, parameters) -> [S, d]


class Distances(flax.struct.PyTreeNode):
    """Every layer (first axis) against every step of a path (second), on one prompt."""

    prediction: Array  # [L+1, S]  |ŷ_t - w_s·x_query|
    sensitivity: Array  # [L+1, S]  |∂ŷ_t/∂x_query - w_s|
    cosine: Array  # [L+1, S]  of the two; 0 where either vanishes


def distances(
    predictions: Array,  # [L+1]  trace.layer_predictions
    weights: Array,  # [L+1, d]  implicit_gd.implied_weights
    path: Array,  # [S, d]
    x_query: Array,  # [d]
) -> Distances:
    """How far each layer of a model is from each step of an algorithm, on one prompt.

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
    """Mean over prompts [B] of (w_S·x_query - target)², w_S the last weights of the path.

    The objective for fitting parameters: against y_query it gives the best algorithm of its kind,
    against a model's predictions the one most like the model. Neither reads the steps between.
    Fit what must be positive through its logarithm.
    """
    chex.assert_equal_shape([targets, batch.y_query], custom_message="one target for each prompt")

    def error(prompt: Prompt, target: Array) -> Array:
        return (path(prompt, parameters)[-1] @ prompt.x_query - target) ** 2

    return jax.vmap(error)(batch, targets).mean()


def descent_plus_plus(prompt: Prompt, parameters: tuple[Array, Array]) -> Array:  # [S, d]
    """GD++ with parameters (step_sizes, gammas), each [S-1] (docs/theory, "GD++")."""
    return estimators.gradient_descent_plus_plus(prompt, *parameters)


def preconditioned_descent(prompt: Prompt, preconditioners: Array) -> Array:  # [S, d]
    """w_{t+1} = w_t + A_t Xᵀ(y - Xw_t)/n with the matrices A_t [S-1, d, d].

    docs/theory, "Layers are preconditioned steps".
    """
    ones = jnp.ones(preconditioners.shape[0], jnp.result_type(preconditioners))
    return estimators.gradient_descent(prompt, ones, preconditioners)


def newton(prompt: Prompt, num_steps: int, scale: Real = 1.0) -> Array:  # [num_steps+1, d]
    """Least squares by Newton's iteration for the inverse of H = XᵀX/n, from w = 0.

    w_t = M_t Xᵀy/n, M_1 = scale H/|H|_F², M_{t+1} = 2 M_t - M_t H M_t, hence 1 - h m_{t+1} =
    (1 - h m_t)² for every eigenvalue h. It converges for 0 < scale < 2 (Schulz 1933; as a rival of
    descent in context: Fu et al. 2310.17086).
    """
    num_steps = check_at_least(num_steps, "num_steps")
    return _newton(admit(prompt), num_steps, scale)


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
    """Ridge along penalties exp(log_penalties) [S], usually falling: the path without steps."""
    return jax.vmap(lambda log: estimators.ridge(prompt, jnp.exp(log)))(log_penalties)
