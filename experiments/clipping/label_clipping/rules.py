"""The Bayes rule for classes, by Gibbs sampling."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri

_WARM = 5  # one sweep in so many is thrown away, the first ones


@partial(jax.jit, static_argnums=2)
def bayes(key, batch, sweeps, noise_std, weight_std):  # Prompt [B] -> [B]
    """P(w·x_query > 0 | demonstrations), w ~ N(0, weight_std² I), y_i = sign(w·x_i + ε_i).

    With z_i = y_i (w·x_i + ε_i)/σ the posterior of (w, z) is Gaussian in w given z and truncated to
    z_i > 0 given w: the sampler of Albert and Chib (1993). Each sweep gives P(w·x_query > 0 | z).
    """

    def probability(key, prompt):
        n, d = prompt.x.shape
        rows = prompt.x * prompt.y[:, None] / noise_std
        covariance = jnp.linalg.inv(rows.T @ rows + jnp.eye(d, dtype=rows.dtype) / weight_std**2)
        root = jnp.linalg.cholesky(covariance)
        spread = jnp.sqrt(prompt.x_query @ covariance @ prompt.x_query)

        def sweep(z, key):
            key_w, key_z = jax.random.split(key)
            mean = covariance @ (rows.T @ z)
            centre = rows @ (mean + root @ jax.random.normal(key_w, (d,), rows.dtype))
            # z = centre + N(0, 1), above 0, by its distribution's inverse from the upper end.
            upper = ndtr(centre) * jax.random.uniform(key_z, (n,), rows.dtype, minval=1e-6)
            z = jnp.maximum(centre - ndtri(upper), 0)
            return z, ndtr(mean @ prompt.x_query / spread)

        _, probabilities = jax.lax.scan(
            sweep, jnp.ones_like(prompt.y), jax.random.split(key, sweeps)
        )
        return probabilities[sweeps // _WARM :].mean()

    return jax.vmap(probability)(jax.random.split(key, len(batch.y)), batch)
