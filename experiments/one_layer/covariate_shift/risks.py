"""Errors of trained layers and of what they are compared with: after a shift, and on the table."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.one_layer.covariate_shift.config import cases
from lsa_lab import estimators
from lsa_lab.models import moments
from lsa_lab.prompts import second_moment
from lsa_lab.tasks.linear import LinearTask, sample

PIECE = 500  # prompts tested at a time


def errors(predictions, prompts):  # -> [B]
    return (predictions - prompts.y_query) ** 2


def descend(prompts, steps):  # -> [B]
    """Predictions of gradient descent from 0 with each prompt's own step size 1/λ_max(H)."""

    def predict(prompt):
        step_sizes = jnp.full(steps, estimators.largest_step(prompt.x))
        return estimators.gradient_descent(prompt, step_sizes)[-1] @ prompt.x_query

    return jax.vmap(predict)(prompts)


def shorten(prompts, m):
    """The prompts with their first m demonstrations."""
    return prompts.replace(x=prompts.x[:, :m], y=prompts.y[:, :m])


@partial(jax.jit, static_argnames="config")
def shifted_risks(params, key, config):  # -> [cases], [], [scales]
    """Risks / tr Λ' of one run's layer, of predicting zero, and of descent, on the same prompts.

    Without noise a prompt of scale c is one of scale 1 times √c; short prompts begin long ones.
    """
    task = LinearTask(max(config.n, *config.lengths), config.d)
    pieces = -(-config.test_prompts // PIECE)

    def piece(keys):
        prompts = jax.vmap(partial(sample, task=task))(keys)
        lengths = {m for _, m in cases(config)}
        moment = {m: jax.vmap(second_moment, out_axes=-1)(shorten(prompts, m)) for m in lengths}

        def layer(c, m):
            query, target = c**0.5 * prompts.x_query.T, c**0.5 * prompts.y_query
            guess = moments.predictions_from_moments(params, c * moment[m], query)
            return jnp.mean((guess - target) ** 2) / c

        def descent(c):
            test = jax.tree.map(lambda leaf: c**0.5 * leaf, shorten(prompts, config.n))
            return errors(descend(test, config.descent_steps), test).mean() / c

        layers = jnp.stack([layer(c, m) for c, m in cases(config)])
        return layers, jnp.mean(prompts.y_query**2), jax.lax.map(descent, jnp.array(config.scales))

    keys = jax.random.split(key, (pieces, -(-config.test_prompts // pieces)))
    return jax.tree.map(lambda risk: risk.mean(0) / config.d, jax.lax.map(piece, keys))


@partial(jax.jit, static_argnames=("lengths", "steps"))
def table_errors(layers, prompts, lengths, steps):  # -> [learners, lengths, B]
    """Squared errors on the table; of the trained layers, their mean over the runs."""

    def learners(m):
        short = shorten(prompts, m)
        layer = jax.lax.map(
            lambda params: errors(moments.predictions(params, short), short), layers
        )
        # Bayes for w ~ N(0, I/d) where half of the variance of y is noise.
        weights = jax.vmap(partial(estimators.ridge, penalty=short.x.shape[2] / m))(short)
        others = (
            descend(short, steps),
            (weights * short.x_query).sum(1),
            jnp.zeros_like(short.y_query),
        )
        return jnp.stack([layer.mean(0), *(errors(guess, short) for guess in others)])

    return jnp.stack([learners(m) for m in lengths], axis=1)
