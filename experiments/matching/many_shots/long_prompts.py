"""The errors of linear and softmax stacks on long prompts, for `many_shots`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import Model, forward
from lsa_lab.models import moments
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample


def step_size(config):
    """The best of a single step at the trained length."""
    return 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)


@partial(jax.jit, static_argnums=0)
def sample_moments(config, keys):  # -> [R, noise, shots, B, e, e], [R, B, d], [R, B]
    """Moments of the first n demonstrations of each prompt; other noise is the same, scaled."""
    ends = np.array(config.shots, float)[:, None, None]

    def of_prompt(key, noise_std):
        prompt = sample(key, LinearTask(max(config.shots), config.d, noise_std=noise_std))
        rows = tokens(prompt)[:-1]
        parts = [part.T @ part for part in jnp.split(rows, config.shots[:-1])]
        return jnp.cumsum(jnp.stack(parts), axis=0) / ends, prompt.x_query, prompt.y_query

    def run(key):
        over_noises = jax.vmap(of_prompt, (None, 0), (0, None, None))
        split = jax.random.split(key, config.test_prompts)
        noises = jnp.asarray(config.noises)
        second_moments, x, y = jax.lax.map(lambda k: over_noises(k, noises), split, batch_size=20)
        return jnp.moveaxis(second_moments, 0, 2), x, y

    return jax.lax.map(run, keys)


@partial(jax.jit, static_argnums=0)
def linear_errors(config, params, prompts):  # -> [R, noise, shots, 2, 2], ...
    """Median squared errors of both models by scaling, and of the Bayes rule; the median of
    η λ_max(XᵀX) over the n of training."""

    def cell(params, second_moment, x_query, y_query, n, noise_std):
        longer, batch_last = n / config.n, jnp.moveaxis(second_moment, 0, -1)

        def squared(params, factor):
            predicted = moments.predictions_from_moments(params, factor * batch_last, x_query.T)
            return jnp.median((predicted - y_query) ** 2)

        errors = [jnp.stack([squared(model, f) for f in (1.0, longer)]) for model in params]
        gram, label = second_moment[:, :-1, :-1], second_moment[:, :-1, -1]
        penalty = noise_std**2 / n * jnp.eye(config.d)[None]
        posterior = jnp.linalg.solve(gram + penalty, label[:, :, None])[:, :, 0]
        bayes = jnp.median(((posterior * x_query).sum(1) - y_query) ** 2)
        largest = step_size(config) * longer * jnp.median(jnp.linalg.eigvalsh(gram)[:, -1])
        return jnp.stack(errors), bayes, largest

    def run(row):
        params, (second_moments, x, y) = row
        shots, noises = jnp.asarray(config.shots, float), jnp.asarray(config.noises)

        def by_shots(row):
            moments_of_noise, noise_std = row
            return jax.lax.map(
                lambda of_length: cell(params, of_length[0], x, y, of_length[1], noise_std),
                (moments_of_noise, shots),
            )

        return jax.lax.map(by_shots, (second_moments, noises))

    return jax.lax.map(run, (params, prompts))


@partial(jax.jit, static_argnums=(0, 2))
def softmax_errors(config, models: Model, n, keys, noises):  # leaves [R, ...] -> [R, noises]
    """Medians over prompts, one at a time: its T² scores per head are the memory. Noise levels
    share the rest."""
    trace = forward(models.spec)

    def squared(params, key, noise_std):
        task = LinearTask(n, config.d, noise_std=noise_std, dtype=jnp.float32)
        prompt = sample(key, task)
        return (predict(trace(params, tokens(prompt))) - prompt.y_query) ** 2

    def run(params, key):
        keys = jax.random.split(key, config.softmax_prompts)
        by_noise = jax.vmap(squared, (None, None, 0))
        return jnp.median(jax.lax.map(lambda k: by_noise(params, k, noises), keys), axis=0)

    return jax.lax.map(lambda row: run(*row), (models.params, keys))
