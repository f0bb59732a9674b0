"""The models that `matching_transfer` teaches by the chosen subsets, and their errors."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.models.model import Model
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, moments


def one_layer(config):
    """The best single step."""
    return constructions.one_step_optimum(jnp.eye(config.d), config.n, config.noise_std**2)


def descent(config):
    """Its step again and again; the first layers are the shorter descents."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    return constructions.gradient_descent(jnp.full(max(config.descents), step), config.d)


@partial(jax.jit, static_argnums=0)
def constructed_errors(config, x, y, queries):
    """Errors [1 + descents, R, P, S] of one layer and of each descent, whose answers are linear in
    the query, after subsets x [R, P, S, n, d] and y, on queries [R, P, Q, d] and their answers."""

    def errors(x, y, x_queries, y_queries):
        moment = prompts.second_moment(prompts.Prompt(x, y, x[0], y[0]))
        shallow = moments.layer_maps(one_layer(config), moment)
        deep = moments.layer_maps(descent(config), moment)
        maps = jnp.stack([shallow[1], *(deep[depth] for depth in config.descents)])
        weights = -maps[:, -1, :-1]
        return ((weights @ x_queries.T - y_queries[None]) ** 2).mean(1)

    over_pools = jax.vmap(jax.vmap(errors, (0, 0, None, None)))
    return jnp.moveaxis(jax.lax.map(lambda row: over_pools(*row), (x, y, *queries)), -1, 0)


@partial(jax.jit, static_argnums=0)
def bayes_errors(config, x, y, x_queries, y_queries):  # as for ``constructed_errors`` -> [R, P, S]
    """Mean squared error of the Bayes rule on the queries of each pool, after every subset."""

    def errors(x, y, x_queries, y_queries):
        prompt = prompts.Prompt(x, y, x[0], y[0])
        weights = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return ((x_queries @ weights - y_queries) ** 2).mean()

    over_pools = jax.vmap(jax.vmap(errors, (0, 0, None, None)))
    return jax.lax.map(lambda row: over_pools(*row), (x, y, x_queries, y_queries))


@moments.compiled
def errors(models: Model, x, y, queries):  # leaves [R, ...] -> [R, P, S]
    """Mean squared error on the queries of each pool, after every subset, with each run's weights;
    the shapes are those of ``constructed_errors``."""

    def subset_errors(model, x, y, x_queries, y_queries):
        batch = prompts.Prompt(
            jnp.broadcast_to(x, (len(x_queries), *x.shape)),
            jnp.broadcast_to(y, (len(x_queries), *y.shape)),
            x_queries,
            y_queries,
        )
        return model.errors(batch).mean()

    over_subsets = jax.vmap(subset_errors, (None, 0, 0, None, None))
    over_pools = jax.vmap(over_subsets, (None, 0, 0, 0, 0))
    return jax.lax.map(lambda row: over_pools(*row), (models, x, y, *queries))
