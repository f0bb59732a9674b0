"""What the last demonstration of a prompt is worth, and its relevance and novelty beside others."""

import jax.numpy as jnp
from jax import Array

from lsa_lab import estimators
from lsa_lab.prompts import Prompt


def drop_last(prompt: Prompt) -> Prompt:
    return prompt.replace(x=prompt.x[:-1], y=prompt.y[:-1])


def factors(prompt: Prompt, noise_var: float) -> dict[str, Array]:  # {name: []}
    """The Bayes rule for w ~ N(0, I), Σ the posterior covariance given the others.

    Its answer moves by flow times surprise, x_queryᵀΣx/(xᵀΣx + σ²) times y - ŷ(x).
    """
    others, x, x_query = drop_last(prompt), prompt.x[-1], prompt.x_query
    precision = jnp.eye(len(x)) + others.x.T @ others.x / noise_var
    spread, spread_query = jnp.linalg.solve(precision, jnp.stack([x, x_query]).T).T  # Σx, Σx_query
    before = estimators.gaussian_posterior_mean(others, 1.0, noise_var)
    after = estimators.gaussian_posterior_mean(prompt, 1.0, noise_var)
    variance, covariance = x @ spread, x_query @ spread
    lengths = jnp.linalg.norm(x) * jnp.linalg.norm(x_query)
    return {
        "similarity": jnp.abs(x @ x_query) / lengths,
        "distance": jnp.linalg.norm(x - x_query),
        "flow": jnp.abs(covariance) / (variance + noise_var),
        "surprise": jnp.abs(prompt.y[-1] - before @ x),
        "correlation": jnp.abs(covariance) / jnp.sqrt(variance * (x_query @ spread_query)),
        "variance": variance,
        "without": before @ x_query,
        "with": after @ x_query,
    }


def gains(without: Array, with_it: Array, target: Array) -> Array:  # [B] x 3 -> [B]
    """Squared error without it less that with it. Against the Bayes answer to the whole prompt in
    the target's place it is the expected gain, given all that the prompt shows."""
    return (without - target) ** 2 - (with_it - target) ** 2
