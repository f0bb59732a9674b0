"""Gradient descent on |y - Xw|²/2n from w = 0, four ways to bend it, and its closed form.

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
    admit,
    as_floats,
    check_at_least,
    check_factorable,
    check_finite,
    is_concrete,
    number,
    schedule,
)
from lsa_lab.prompts import Prompt, near_one, times_power


def gradient_descent(
    prompt: Prompt,
    step_sizes: ArrayLike,  # [steps]
    preconditioners: Array | None = None,  # [steps, d, d]
) -> Array:  # [steps+1, d]
    """w_{t+1} = w_t + η_t A_t Xᵀ(y - Xw_t)/n from w_0 = 0; A_t is the identity unless given.

    A_t stands as it is: a layer with W_kq = diag(A, 0), ``constructions.preconditioned``, takes
    the step with Aᵀ (Ahn et al. 2306.00297; docs/theory, "Layers are preconditioned steps").
    """
    prompt = admit(prompt)
    step_sizes = schedule(step_sizes, "step_sizes", prompt)
    if preconditioners is not None:
        d = prompt.x.shape[1]
        chex.assert_shape(
            preconditioners,
            (*step_sizes.shape, d, d),
            custom_message="preconditioners are [steps, d, d], one for each step size",
        )
        check_finite(preconditioners, "preconditioners")
        preconditioners = jnp.asarray(preconditioners, prompt.x.dtype)
    return _descend(prompt.x, prompt.y, step_sizes, preconditioners)


def gradient_descent_plus_plus(
    prompt: Prompt, step_sizes: ArrayLike, gammas: ArrayLike
) -> Array:  # [steps+1, d]
    """GD++: after each step the covariates are contracted where they vary most, x ← (I - γ_t H_t)x.

    T_{t+1} = (I - γ_t T_t H T_t) T_t from T_0 = I, w_{t+1} = w_t + η_t T_t² Xᵀ(y - Xw_t)/n, in the
    coordinates of the prompt (von Oswald et al. 2212.07677; docs/theory, "GD++").
    """
    prompt = admit(prompt)
    step_sizes = schedule(step_sizes, "step_sizes", prompt)
    gammas = schedule(gammas, "gammas", prompt)
    chex.assert_equal_shape([step_sizes, gammas], custom_message="gammas: one for each step size")
    return _descend_plus_plus(prompt.x, prompt.y, step_sizes, gammas)


def preprocessed_gradient_descent(
    prompt: Prompt, step_size: Real, num_steps: int, *, normalise: bool = False
) -> Array:  # [num_steps+1]
    """Weigh every coordinate by its correlation with the labels, then descend: the predictions.

    R = diag(r), x̃ = Rx for demonstrations and query, θ_0 = 0, θ_{t+1} = θ_t + η X̃ᵀ(y - X̃θ_t)/n,
    ŷ_t = θ_t·x̃_query; ``normalise`` takes R = diag(r/|r|) (modelled on Chen et al. 2408.04532;
    docs/theory, "Preprocess then optimise"). It converges for step sizes below
    ``preprocessed_step_limit``.
    """
    prompt = admit(prompt)
    step_size = number(step_size, "step_size", prompt, "a step against the gradient is positive")
    num_steps = check_at_least(num_steps, "num_steps", 0)
    return _preprocessed(prompt, step_size, num_steps, normalise)


def mixed_gradient_descent(
    prompt: Prompt, raw_step_sizes: ArrayLike, step_sizes: ArrayLike
) -> Array:  # [steps+1, d]
    """w_{t+1} = w_t + (α_t I + β_t diag(r²)) Xᵀ(y - Xw_t)/n from w_0 = 0, α raw, β preprocessed.

    β = 0 is ``gradient_descent``, α = 0 ``preprocessed_gradient_descent`` with a step size for each
    step. α spares the rule the many steps that coordinates with a small r would need (derived here;
    docs/theory, "Preprocess then optimise").
    """
    prompt = admit(prompt)
    alphas = schedule(raw_step_sizes, "raw_step_sizes", prompt)
    betas = schedule(step_sizes, "step_sizes", prompt)
    chex.assert_equal_shape(
        [alphas, betas], custom_message="raw_step_sizes: one for each of step_sizes"
    )
    squares = _correlations(prompt.x, prompt.y, normalise=False) ** 2
    diagonals = alphas[:, None] + betas[:, None] * squares[None]
    preconditioners = jax.vmap(jnp.diag)(diagonals)
    return _descend(prompt.x, prompt.y, jnp.ones_like(alphas), preconditioners)


def descent_modes(prompt: Prompt) -> tuple[Array, Array]:  # κ [d], c [d]
    """The curvatures κ_k of H, and c_k = (v_k·x_query)(v_k·r), v_k its eigenvectors.

    For ``descent_predictions``. A κ_k of zero comes back as the least number that can be divided
    by.
    """
    prompt = admit(prompt, factored=True)
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
    """ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t)/κ_k, what ``gradient_descent`` predicts at the query.

    All step sizes η and numbers of steps t at once, from the ``descent_modes`` of a prompt, at a
    cost that does not grow with t; not finite where the descent outgrows its precision (derived
    here; docs/theory, "Descent is a spectral filter").
    """
    curvatures, weights = as_floats(curvatures), as_floats(weights)
    step_sizes, num_steps = jnp.asarray(step_sizes, curvatures.dtype), jnp.asarray(num_steps)
    chex.assert_equal_shape([curvatures, weights], custom_message="one weight for each curvature")
    chex.assert_rank(
        [curvatures, step_sizes, num_steps],
        1,
        custom_message="curvatures [d], step_sizes [E], num_steps [T]; vmap over prompts",
    )
    check_finite(step_sizes, "step_sizes")
    if is_concrete(num_steps) and not np.all((np.asarray(num_steps) >= 0) & (num_steps % 1 == 0)):
        raise ValueError(f"num_steps = {num_steps}: numbers of steps are whole and not negative")
    shares = step_sizes[:, None] * curvatures[None]  # [E, d]  ηκ
    left = jnp.maximum(jnp.abs(1 - shares), jnp.finfo(shares.dtype).tiny)
    rates = jnp.where(shares < 0.5, jnp.log1p(-jnp.minimum(shares, 0.5)), jnp.log(left))
    powers = num_steps.astype(shares.dtype)[None, :, None] * rates[:, None]  # [E, T, d]
    grown = jnp.expm1(powers)  # |1 - ηκ|^t - 1
    turned = (num_steps % 2 == 1)[None, :, None] & (shares > 1)[:, None]
    return (jnp.where(turned, 2 + grown, -grown) / curvatures[None, None]) @ weights


def largest_step(x: Array) -> Array:  # [n, d] -> []
    """1/λ_max(XᵀX/n): the largest step with which descent overshoots in no direction.

    A step multiplies the error along an eigenvector by 1 - ηλ: in [0, 1] up to this η, and below
    -1 for the largest λ beyond twice as much. Infinite where X = 0 and nothing moves.

    >>> x = jnp.array([[2.0, 0.0], [0.0, 1.0]])  # XᵀX/n = diag(2, 1/2)
    >>> float(largest_step(x))
    0.5
    """
    chex.assert_rank(x, 2, custom_message="covariates are [n, d]; vmap over prompts")
    check_finite(x, "x")
    check_factorable(x, "x")
    x, exponent = near_one(x)
    return times_power(1 / jnp.linalg.eigvalsh(x.T @ x / len(x))[-1], -2 * exponent.reshape(()))


def preprocessed_step_limit(prompt: Prompt, *, normalise: bool = False) -> Array:  # []
    """2/λ_max(RHR): below it ``preprocessed_gradient_descent`` converges.

    docs/theory, "Preprocess then optimise".
    It varies from prompt to prompt like r⁻² (r⁰ if normalised) where the labels' scale differs,
    like r⁻⁴ (r⁻²) where the covariates' does, so that one step size for all prompts is slow on most
    of them; infinite where r = 0 and nothing moves.
    """
    prompt = admit(prompt, factored=True)
    (x, of_x), (y, of_y) = near_one(prompt.x), near_one(prompt.y)
    features, exponent = near_one(x * _correlations(x, y, normalise)[None])
    limit = 2 * x.shape[0] / jnp.linalg.norm(features, ord=2) ** 2
    exponent = (exponent + of_x).reshape(()) + (0 if normalise else of_x.reshape(()) + of_y[0])
    return times_power(limit, -2 * exponent)


@jax.jit
def _descend(x: Array, y: Array, step_sizes: Array, preconditioners: Array | None) -> Array:
    hessian, moment = _moments(x, y)

    def step(weights, this):
        step_size, preconditioner = this
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

    def step(state, this):
        weights, turn = state  # [d], [d, d]
        step_size, gamma = this
        weights = weights + step_size * (turn @ (turn @ (moment - hessian @ weights)))
        return (weights, turn - gamma * (turn @ hessian @ turn @ turn)), weights

    start = jnp.zeros_like(moment)
    identity = jnp.eye(moment.shape[0], dtype=moment.dtype)
    _, path = jax.lax.scan(step, (start, identity), (step_sizes, gammas))
    return jnp.concatenate([start[None], path])


@jax.jit(static_argnums=(2, 3))
def _preprocessed(prompt: Prompt, step_size: Array, num_steps: int, normalise: bool) -> Array:
    factors = _correlations(prompt.x, prompt.y, normalise)
    hessian, moment = _moments(prompt.x * factors[None], prompt.y)
    query = factors * prompt.x_query

    def step(weights, _):
        return weights + step_size * (moment - hessian @ weights), weights @ query

    return jax.lax.scan(step, jnp.zeros_like(moment), length=num_steps + 1)[1]


def _moments(x: Array, y: Array) -> tuple[Array, Array]:  # [d, d], [d]
    return x.T @ x / x.shape[0], x.T @ y / x.shape[0]


def _correlations(x: Array, y: Array, normalise: bool) -> Array:  # [d]
    correlations = x.T @ y / x.shape[0]
    if not normalise:
        return correlations
    correlations, _ = near_one(correlations)
    square = correlations @ correlations
    # Two selections: the derivative of the square root at 0 must not be formed.
    return correlations / jnp.sqrt(jnp.where(square > 0, square, 1))
