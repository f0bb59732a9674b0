"""Gradient descent on |y - Xw|²/2n from w = 0, its variants, and its closed form.

H = XᵀX/n and r = Xᵀy/n throughout: the gradient is Hw - r.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import (
    Real,
    as_floats,
    check_at_least,
    check_factorable,
    check_finite,
    check_number,
    check_prompt,
    check_schedule,
    is_concrete,
)
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import scale_by_power, scale_near_one


def gradient_descent(
    prompt: Prompt,
    step_sizes: ArrayLike,  # [steps]
    preconditioners: Array | None = None,  # [steps, d, d]
) -> Array:  # [steps+1, d]
    """Return the path w_{t+1} = w_t + η_t A_t Xᵀ(y - Xw_t)/n from w_0 = 0; A_t = I by default.

    A_t enters as it is: a layer with W_kq = diag(A, 0), ``constructions.preconditioned``, takes
    the step with Aᵀ (Ahn et al. 2306.00297; docs/theory, "Layers are preconditioned steps").
    """
    prompt = check_prompt(prompt)
    step_sizes = check_schedule(step_sizes, "step_sizes", prompt)
    if preconditioners is not None:
        d = prompt.x.shape[1]
        words = "preconditioners are [steps, d, d], one for each step size"
        chex.assert_shape(preconditioners, (*step_sizes.shape, d, d), custom_message=words)
        check_finite(preconditioners, "preconditioners")
        preconditioners = jnp.asarray(preconditioners, prompt.x.dtype)
    return _descend(prompt.x, prompt.y, step_sizes, preconditioners)


def gradient_descent_plus_plus(
    prompt: Prompt, step_sizes: ArrayLike, gammas: ArrayLike
) -> Array:  # [steps+1, d]
    """Return the path of GD++, which contracts x ← (I - γ_t H_t) x after each step.

    T_{t+1} = (I - γ_t T_t H T_t) T_t from T_0 = I, w_{t+1} = w_t + η_t T_t² Xᵀ(y - Xw_t)/n, in the
    coordinates of the prompt (von Oswald et al. 2212.07677; docs/theory, "GD++").
    """
    prompt = check_prompt(prompt)
    step_sizes = check_schedule(step_sizes, "step_sizes", prompt)
    gammas = check_schedule(gammas, "gammas", prompt)
    chex.assert_equal_shape([step_sizes, gammas], custom_message="gammas: one for each step size")
    return _descend_plus_plus(prompt.x, prompt.y, step_sizes, gammas)


def preprocessed_gradient_descent(
    prompt: Prompt, step_size: Real, num_steps: int, *, normalise: bool = False
) -> Array:  # [num_steps+1]
    """Return the predictions of descent on covariates weighted by their label correlations.

    R = diag(r), x̃ = Rx for demonstrations and query, θ_0 = 0, θ_{t+1} = θ_t + η X̃ᵀ(y - X̃θ_t)/n,
    ŷ_t = θ_t·x̃_query; ``normalise`` takes R = diag(r/|r|) (modelled on Chen et al. 2408.04532;
    docs/theory, "Preprocess then optimise"). It converges for step sizes below
    ``preprocessed_step_limit``.
    """
    prompt = check_prompt(prompt)
    step_size = check_number(step_size, "step_size", prompt, "a descent step is positive")
    num_steps = check_at_least(num_steps, "num_steps", 0)
    factors = _correlations(prompt.x, prompt.y, normalise)
    step_sizes = jnp.broadcast_to(step_size, (num_steps,))
    path = _descend(prompt.x * factors[None], prompt.y, step_sizes, None)
    return path @ (factors * prompt.x_query)


def mixed_gradient_descent(
    prompt: Prompt, raw_step_sizes: ArrayLike, step_sizes: ArrayLike
) -> Array:  # [steps+1, d]
    """Return the path w_{t+1} = w_t + (α_t I + β_t diag(r²)) Xᵀ(y - Xw_t)/n from w_0 = 0.

    α are ``raw_step_sizes``, β ``step_sizes``: β = 0 is ``gradient_descent``, α = 0
    ``preprocessed_gradient_descent`` with a step size for each step. α replaces the many steps that
    coordinates with a small r need (derived here; docs/theory, "Preprocess then optimise").
    """
    prompt = check_prompt(prompt)
    alphas = check_schedule(raw_step_sizes, "raw_step_sizes", prompt)
    betas = check_schedule(step_sizes, "step_sizes", prompt)
    words = "raw_step_sizes: one for each of step_sizes"
    chex.assert_equal_shape([alphas, betas], custom_message=words)
    squares = _correlations(prompt.x, prompt.y, normalise=False) ** 2
    diagonals = alphas[:, None] + betas[:, None] * squares[None]
    return _descend(prompt.x, prompt.y, jnp.ones_like(alphas), jax.vmap(jnp.diag)(diagonals))


def descent_modes(prompt: Prompt) -> tuple[Array, Array]:  # κ [d], c [d]
    """Return the curvatures κ_k of H, and c_k = (v_k·x_query)(v_k·r), v_k its eigenvectors.

    A κ_k of zero is replaced by the smallest number that ``descent_predictions`` can divide by.
    """
    prompt = check_prompt(prompt, factored=True)
    hessian, moment = _moments(prompt.x, prompt.y)
    curvatures, basis = jnp.linalg.eigh(hessian)
    least = jnp.sqrt(jnp.finfo(curvatures.dtype).tiny)
    return jnp.maximum(curvatures, least), (basis.T @ prompt.x_query) * (basis.T @ moment)


def descent_predictions(
    curvatures: Array,  # [d]
    weights: Array,  # [d]  c
    step_sizes: ArrayLike,  # [E]
    num_steps: ArrayLike,  # [T]
) -> Array:  # [E, T]
    """Return ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t)/κ_k, the predictions of ``gradient_descent``.

    All step sizes η and numbers of steps t at once, from the ``descent_modes`` of a prompt, at a
    cost that does not grow with t; not finite where the descent overflows (derived here;
    docs/theory, "Descent is a spectral filter").
    """
    curvatures, weights = as_floats(curvatures), as_floats(weights)
    step_sizes, num_steps = jnp.asarray(step_sizes, curvatures.dtype), jnp.asarray(num_steps)
    chex.assert_equal_shape([curvatures, weights], custom_message="one weight for each curvature")
    words = "curvatures [d], step_sizes [E], num_steps [T]; vmap over prompts"
    chex.assert_rank([curvatures, step_sizes, num_steps], 1, custom_message=words)
    check_finite(step_sizes, "step_sizes")
    if is_concrete(num_steps) and not np.all((np.asarray(num_steps) >= 0) & (num_steps % 1 == 0)):
        raise ValueError(f"num_steps = {num_steps}: numbers of steps are whole and not negative")
    products = step_sizes[:, None] * curvatures[None]  # [E, d]  ηκ
    distances = jnp.maximum(jnp.abs(1 - products), jnp.finfo(products.dtype).tiny)
    small = jnp.log1p(-jnp.minimum(products, 0.5))
    rates = jnp.where(products < 0.5, small, jnp.log(distances))
    powers = num_steps.astype(products.dtype)[None, :, None] * rates[:, None]  # [E, T, d]
    growth = jnp.expm1(powers)  # |1 - ηκ|^t - 1
    is_negative = (num_steps % 2 == 1)[None, :, None] & (products > 1)[:, None]  # (1 - ηκ)^t
    return (jnp.where(is_negative, 2 + growth, -growth) / curvatures[None, None]) @ weights


def largest_step(x: Array) -> Array:  # [n, d] -> []
    """Return 1/λ_max(XᵀX/n), the largest step with which descent overshoots in no direction.

    A step multiplies the error along an eigenvector by 1 - ηλ: in [0, 1] up to this η, and below
    -1 for the largest λ beyond twice that η. Infinite where X = 0.

    >>> x = jnp.array([[2.0, 0.0], [0.0, 1.0]])  # XᵀX/n = diag(2, 1/2)
    >>> float(largest_step(x))
    0.5
    """
    chex.assert_rank(x, 2, custom_message="covariates are [n, d]; vmap over prompts")
    check_finite(x, "x")
    check_factorable(x, "x")
    x, exponent = scale_near_one(x)
    return scale_by_power(1 / jnp.linalg.eigvalsh(x.T @ x / len(x))[-1], -2 * exponent.reshape(()))


def preprocessed_step_limit(prompt: Prompt, *, normalise: bool = False) -> Array:  # []
    """Return 2/λ_max(RHR), below which ``preprocessed_gradient_descent`` converges.

    It scales as the labels' unit to the power -2 (0 if normalised) and as the covariates' unit to
    the power -4 (-2), so one step size for all prompts is slow on most. Infinite where r = 0
    (docs/theory, "Preprocess then optimise").
    """
    prompt = check_prompt(prompt, factored=True)
    (x, x_exponent), (y, y_exponent) = scale_near_one(prompt.x), scale_near_one(prompt.y)
    features, exponent = scale_near_one(x * _correlations(x, y, normalise)[None])
    limit = 2 * x.shape[0] / jnp.linalg.norm(features, ord=2) ** 2
    exponent = (exponent + x_exponent).reshape(())
    if not normalise:
        exponent = exponent + x_exponent.reshape(()) + y_exponent[0]
    return scale_by_power(limit, -2 * exponent)


@jax.jit
def _descend(x: Array, y: Array, step_sizes: Array, preconditioners: Array | None) -> Array:
    hessian, moment = _moments(x, y)

    def step(weights, inputs):
        step_size, preconditioner = inputs
        direction = moment - hessian @ weights
        if preconditioner is not None:
            direction = preconditioner @ direction
        weights = weights + step_size * direction
        return weights, weights

    start = jnp.zeros_like(moment)
    _, path = jax.lax.scan(step, start, (step_sizes, preconditioners))
    return jnp.concatenate([start[None], path])


@jax.jit
def _descend_plus_plus(x: Array, y: Array, step_sizes: Array, gammas: Array) -> Array:
    hessian, moment = _moments(x, y)

    def step(state, inputs):
        weights, transform = state  # [d], [d, d]
        step_size, gamma = inputs
        gradient = hessian @ weights - moment
        weights = weights - step_size * (transform @ (transform @ gradient))
        contraction = transform @ hessian @ transform @ transform
        return (weights, transform - gamma * contraction), weights

    start = jnp.zeros_like(moment)
    identity = jnp.eye(moment.shape[0], dtype=moment.dtype)
    _, path = jax.lax.scan(step, (start, identity), (step_sizes, gammas))
    return jnp.concatenate([start[None], path])


def _moments(x: Array, y: Array) -> tuple[Array, Array]:  # [d, d], [d]
    return x.T @ x / x.shape[0], x.T @ y / x.shape[0]


def _correlations(x: Array, y: Array, normalise: bool) -> Array:  # [d]
    correlations = x.T @ y / x.shape[0]
    if not normalise:
        return correlations
    correlations, _ = scale_near_one(correlations)
    square = correlations @ correlations
    # Two selections: the derivative of the square root at 0 must not be formed.
    return correlations / jnp.sqrt(jnp.where(square > 0, square, 1))
