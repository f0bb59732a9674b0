"""Causal models, and others, with the relevant demonstration in every place."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.order.config import ASKED, CAUSAL, Place
from experiments.descent.order.rules import causal_descent
from experiments.descent.specs import SOFTMAX
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import estimators, prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict


def move_relevant(config: Place, models):
    """The Dataset of errors and influences by place."""
    import xarray as xr

    causal, plain = models[CAUSAL], models[SOFTMAX]
    spec = causal.spec
    seeds = np.flatnonzero(causal.finished[0] & plain.finished[0])
    keys = [jax.random.fold_in(jax.random.key(config.seed), tag) for tag in (0, 1)]
    weights = (
        (spec, causal.models(seeds=seeds).params),
        (plain.spec, plain.models(seeds=seeds).params),
        (spec, jax.tree.map(lambda leaf: leaf[seeds], causal.initial)),
    )
    task = tasks.distribution(spec.task, dtype=jnp.float32)
    draw = jax.jit(jax.vmap(partial(tasks.draw, task=task, size=config.prompts)))
    batch = draw(jax.random.split(keys[0], len(seeds)))
    normal = jax.random.normal(keys[1], batch.y_query.shape, batch.y.dtype)
    noise = spec.task.noise_std * normal
    rows = [ask_models(*each, batch, noise) for each in weights]
    rows.append(ask_descent(spec, batch, noise))
    error, noisy, ordinary, influence = (np.stack(each) for each in zip(*rows, strict=True))
    kinds = ("kind", "run")
    return xr.Dataset(
        {
            "error": ((*kinds, "place"), error),
            "noisy": ((*kinds, "place"), noisy),
            "ordinary": (kinds, ordinary),
            "influence": ((*kinds, "place"), influence),
            "least_squares": ("run", least_squares_risks(batch)),
        },
        {"kind": list(ASKED), "place": np.arange(batch.y.shape[-1]) + 1},
    )


def move_demonstration(prompt, place, noise=0.0):  # Prompt, [], [] -> Prompt
    """The first demonstration gives way to one with the query and its answer, and with noise if
    there is any, which moves to ``place``; the others keep their order."""
    x = prompt.x.at[0].set(prompt.x_query)
    y = prompt.y.at[0].set(prompt.y_query + noise)
    order = jnp.arange(len(prompt.y))
    order = jnp.where(order < place, order + 1, jnp.where(order == place, 0, order))
    return prompt.replace(x=x[order], y=y[order])


def place_errors(answer, row):  # Prompt [B] -> ŷ [B]; Prompt [B], [B] -> errors [n] twice, [], [n]
    """Mean squared errors with the relevant demonstration in each place, its label exact and with
    noise, and without it; and the root mean square of ∂ŷ/∂y_i without it."""
    batch, noise = row

    def error(batch):
        return jnp.mean((answer(batch) - batch.y_query) ** 2)

    def moved(place):
        exact = jax.vmap(move_demonstration, (0, None))(batch, place)
        return error(exact), error(jax.vmap(move_demonstration, (0, None, 0))(batch, place, noise))

    exact, noisy = jax.lax.map(moved, jnp.arange(batch.y.shape[-1]))
    slopes = jax.grad(lambda y: answer(batch.replace(y=y)).sum())(batch.y)  # [B, n]
    return exact, noisy, error(batch), jnp.sqrt((slopes**2).mean(0))


@partial(jax.jit, static_argnums=0)
def ask_models(spec, params, batch, noise):  # params, prompts [R, ...] -> as place_errors, [R, ...]
    def ask_run(row):
        return place_errors(Model(spec, row[0]).predict, row[1:])

    return jax.lax.map(ask_run, (params, batch, noise))


@partial(jax.jit, static_argnums=0)
def ask_descent(spec, batch, noise):  # prompts [R, ...] -> as place_errors, [R, ...]
    task, depth = spec.task, spec.architecture.depth
    stack = causal_descent(task.d, batch.y.shape[-1], task.noise_std, depth, batch.y.dtype)

    def answer(batch):
        walk = partial(linear_attention.forward, stack, keys="causal")
        return jax.vmap(lambda prompt: predict(walk(prompts.tokens(prompt))))(batch)

    return jax.lax.map(partial(place_errors, answer), (batch, noise))


@jax.jit
def least_squares_risks(batch):  # Prompt [R, B] -> [R]
    """The excess risk of least squares on prompts as in training."""

    def error(prompt):
        return (estimators.ols(prompt) @ prompt.x_query - prompt.y_query) ** 2

    return jax.vmap(jax.vmap(error))(batch).mean(1)
