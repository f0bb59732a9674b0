"""Prompts, their demonstrations sorted by each rule and shuffled, and the answers to each order."""

from functools import partial

import jax
import jax.numpy as jnp

from lsa_lab import estimators, prompts
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample


def sorted_orders(prompt, noise_std):  # Prompt -> [6, n]
    """The demonstrations sorted by each of ``RULES``.

    Hard is a large residual |y_i - w·x_i| of the Bayes rule's w; a large step is a large gradient
    |y_i||x_i| at w = 0; near is near to the query.
    """
    weights = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
    residual = jnp.abs(prompt.y - prompt.x @ weights)
    step = jnp.abs(prompt.y) * jnp.linalg.norm(prompt.x, axis=1)
    distance = jnp.linalg.norm(prompt.x - prompt.x_query[None], axis=1)
    keys = [residual, -residual, step, -step, -distance, distance]
    return jnp.stack([jnp.argsort(key) for key in keys])


@partial(jax.jit, static_argnums=0)
def sample_orders(config, key):  # -> Prompt, leaves [R, B, ...], and orders [R, B, 6 + O, n]
    """Prompts, and of each the orders by rule, then random ones."""
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)

    def of_prompt(key):
        key_prompt, key_orders = jax.random.split(key)
        prompt = sample(key_prompt, task)
        keys = jax.random.split(key_orders, config.random_orders)
        shuffled = jax.vmap(partial(jax.random.permutation, x=config.n))(keys)
        return prompt, jnp.concatenate([sorted_orders(prompt, config.noise_std), shuffled])

    keys = jax.random.split(key, (config.runs, config.test_prompts))
    return jax.lax.map(jax.vmap(of_prompt), keys)


@partial(jax.jit, static_argnums=0)
def bayes_errors(config, batch):  # -> [R, B]
    """Squared errors of the Bayes rule, which no order changes."""

    def of_prompt(prompt):
        weights = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return (weights @ prompt.x_query - prompt.y_query) ** 2

    return jax.lax.map(jax.vmap(of_prompt), batch)


@partial(jax.jit, static_argnums=0)
def predictions(forward, params, batch, orders):  # -> [R, B, 6 + O]
    def after(params, prompt, order):
        prompt = prompt.replace(x=prompt.x[order], y=prompt.y[order])
        return predict(forward(params, prompts.tokens(prompt)))

    over_orders = jax.vmap(after, (None, None, 0))
    over_prompts = jax.vmap(over_orders, (None, 0, 0))
    return jax.lax.map(lambda row: over_prompts(*row), (params, batch, orders))
