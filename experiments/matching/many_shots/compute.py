"""Ask two trained stacks and a constructed descent with more and more demonstrations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching.many_shots.config import LINEAR, SCALINGS, TRAINED, Config
from experiments.matching.subsets import best_step
from experiments.models.model import Model
from lsa_lab.models import constructions, moments
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample


@partial(jax.jit, static_argnums=(0, 2))
def sample_moments(config, keys, labels="real"):  # -> [R, noise, shots, B, e, e], [R, B, d], ...
    """Moments of the first n demonstrations of each prompt; other noise is the same, scaled. Of
    classes there is the training's noise alone."""
    ends = np.array(config.shots, float)[:, None, None]
    noises = jnp.asarray(config.noises if labels == "real" else [config.noise_std])

    def prompt_moments(key, noise_std):
        task = LinearTask(max(config.shots), config.d, noise_std=noise_std, labels=labels)
        prompt = sample(key, task)
        rows = tokens(prompt)[:-1]
        parts = [part.T @ part for part in jnp.split(rows, config.shots[:-1])]
        return jnp.cumsum(jnp.stack(parts), axis=0) / ends, prompt.x_query, prompt.y_query

    def run(key):
        over_noises = jax.vmap(prompt_moments, (None, 0), (0, None, None))
        split = jax.random.split(key, config.test_prompts)
        second_moments, x, y = jax.lax.map(lambda k: over_noises(k, noises), split, batch_size=20)
        return jnp.moveaxis(second_moments, 0, 2), x, y

    return jax.lax.map(run, keys)


def predictions(params, own_units, batch_last, x_queries, factor):  # [e, e, B], [d, B] -> [B]
    """The stack's predictions where attention divides by n / factor. In units of its own a prompt
    has the moment D S D and the query D x, and its prediction is in units of its labels
    (``prompts.normalise``, read from the moment)."""
    if not own_units:
        return moments.predictions_from_moments(params, factor * batch_last, x_queries)
    squares = jnp.diagonal(batch_last).T  # [e, B]
    a, c = jnp.sqrt(squares[:-1].mean(0)), jnp.sqrt(squares[-1])
    units = 1 / jnp.concatenate([jnp.broadcast_to(a, x_queries.shape), c[None]])
    own = factor * units[:, None] * batch_last * units[None]
    return c * moments.predictions_from_moments(params, own, x_queries / a[None])


@partial(jax.jit, static_argnums=(0, 1))
def linear_errors(config, own_units, params, prompts):  # -> [R, noise, shots, 2, 2], ...
    """Median squared errors of both models by scaling, and of the Bayes rule; the median of
    η λ_max(XᵀX) over the n of training."""

    def cell(params, second_moment, x_query, y_query, n, noise_std):
        longer, batch_last = n / config.n, jnp.moveaxis(second_moment, 0, -1)

        def squared(params, own, factor):
            predicted = predictions(params, own, batch_last, x_query.T, factor)
            return jnp.median((predicted - y_query) ** 2)

        errors = [
            jnp.stack([squared(model, own, factor) for factor in (1.0, longer)])
            for model, own in zip(params, own_units, strict=True)
        ]
        gram, label = second_moment[:, :-1, :-1], second_moment[:, :-1, -1]
        penalty = noise_std**2 / n * jnp.eye(config.d)[None]
        posterior = jnp.linalg.solve(gram + penalty, label[:, :, None])[:, :, 0]
        bayes = jnp.median(((posterior * x_query).sum(1) - y_query) ** 2)
        largest = best_step(config) * longer * jnp.median(jnp.linalg.eigvalsh(gram)[:, -1])
        return jnp.stack(errors), bayes, largest

    def run(row):
        params, (second_moments, x, y) = row
        shots, noises = jnp.asarray(config.shots, float), jnp.asarray(config.noises)

        def noise_errors(row):
            lengths, std = (row[0], shots), row[1]
            return jax.lax.map(lambda each: cell(params, each[0], x, y, each[1], std), lengths)

        return jax.lax.map(noise_errors, (second_moments, noises))

    return jax.lax.map(run, (params, prompts))


@partial(jax.jit, static_argnums=(0, 1))
def linear_wrong(config, own_units, params, prompts):  # of classes -> [R, shots, 2]
    """The share of prompts whose class both models get wrong, divided by n."""

    def run(row):
        params, (second_moments, x, y) = row
        models = [*zip(params, own_units, strict=True)]

        def cell(second_moment):
            batch_last = jnp.moveaxis(second_moment, 0, -1)
            answers = [predictions(*model, batch_last, x.T, 1.0) for model in models]
            return (jnp.stack(answers) * y[None] <= 0).mean(1)

        return jax.lax.map(cell, second_moments[0])

    return jax.lax.map(run, (params, prompts))


@partial(jax.jit, static_argnums=(0, 2, 3))
def softmax_answers(config, models: Model, n, labels, keys):  # leaves [R, ...] -> [R, B], [R, B]
    """Predictions and targets, one prompt at a time: its T² scores per head are the memory. Shorter
    prompts are the first demonstrations of the longest."""
    law = dict(noise_std=config.noise_std, labels=labels, dtype=jnp.float32)
    task = LinearTask(config.softmax_most, config.d, **law)

    def run(row):
        model, key = row

        def answer(key):
            whole = sample(key, task)
            cut = whole.replace(x=whole.x[:n], y=whole.y[:n])
            batch = jax.tree.map(lambda leaf: leaf[None], cut)
            return model.predict(batch)[0], whole.y_query

        return jax.lax.map(answer, jax.random.split(key, config.softmax_prompts))

    return jax.lax.map(run, (models, keys))


def descent(config):  # -> Params [R, ...], the same for all runs
    steps = jnp.full(config.depth, best_step(config))
    stack = constructions.gradient_descent(steps, config.d)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), stack)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    linear, softmax = (models[name].models(seeds=slice(config.runs)) for name in TRAINED)
    # Powers of long prompts outgrow float32, in which the training runs.
    stacks = descent(config), linear.cast_float64().params
    own_units = False, linear.spec.architecture.normalise_prompt
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)  # [noise, shots, R, ...]
        for part in linear_errors(config, own_units, stacks, sample_moments(config, keys))
    )
    classes = sample_moments(config, keys, "signs")
    wrong = np.asarray(linear_wrong(config, own_units, stacks, classes))
    few = [n for n in config.shots if n <= config.softmax_most]
    both = [softmax_errors(config, softmax, n, keys) for n in few]
    medians, softmax_wrong = (np.array(parts) for parts in zip(*both, strict=True))
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (("few", "run"), medians),
            "wrong": (("run", "shots", "model"), wrong),
            "softmax_wrong": (("few", "run"), softmax_wrong),
        },
        {"noise": list(config.noises), "shots": list(config.shots), "few": few}
        | {"model": list(LINEAR), "scaling": list(SCALINGS)},
    )


def softmax_errors(config, models, n, keys):  # -> [R], [R]
    """The median squared error in regression, and the share of wrong classes."""
    predicted, target = map(np.asarray, softmax_answers(config, models, n, "real", keys))
    answered, classes = map(np.asarray, softmax_answers(config, models, n, "signs", keys))
    squared = (predicted.astype(float) - target) ** 2
    return np.median(squared, axis=1), (answered * classes <= 0).mean(1)
