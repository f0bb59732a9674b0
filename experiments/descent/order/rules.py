"""Causal stacks, constructed and trained, with demonstrations sorted by each rule and shuffled."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.order.config import RULES, Rules
from experiments.models import model
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training.status import refuse_divergence


def causal_descent(d, n, noise_std, depth, dtype=None):  # -> Params [L, ...]
    """The best single step again and again, to be read with a causal mask."""
    step = 1 / (1 + (1 + d + noise_std**2) / n)
    return constructions.gradient_descent(jnp.full(depth, step, dtype), d)


def stacks(config, trained):  # -> {name: (forward, params [R, ...])}
    """The constructed descent, the same for all runs, and the trained stacks."""
    descent = causal_descent(config.d, config.n, config.noise_std, config.depth)
    params = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), descent)
    every = {"descent": (partial(linear_attention.forward, keys="causal"), params)}
    for name, _ in config.models:
        runs, seeds = trained[name], slice(config.runs)
        refuse_divergence(runs.status[seeds], name, needs_all=True)
        forward = partial(transformer.forward, config=model.transformer_config(runs.spec))
        every[name] = forward, runs.models(seeds=seeds).cast_float64().params
    return every


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

    def draw(key):
        key_prompt, key_orders = jax.random.split(key)
        prompt = sample(key_prompt, task)
        keys = jax.random.split(key_orders, config.random_orders)
        shuffled = jax.vmap(partial(jax.random.permutation, x=config.n))(keys)
        return prompt, jnp.concatenate([sorted_orders(prompt, config.noise_std), shuffled])

    keys = jax.random.split(key, (config.runs, config.test_prompts))
    return jax.lax.map(jax.vmap(draw), keys)


@partial(jax.jit, static_argnums=0)
def bayes_errors(config, batch):  # -> [R, B]
    """Squared errors of the Bayes rule, which no order changes."""

    def error(prompt):
        weights = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return (weights @ prompt.x_query - prompt.y_query) ** 2

    return jax.lax.map(jax.vmap(error), batch)


@partial(jax.jit, static_argnums=0)
def predictions(forward, params, batch, orders):  # -> [R, B, 6 + O]
    def answer(params, prompt, order):
        prompt = prompt.replace(x=prompt.x[order], y=prompt.y[order])
        return predict(forward(params, prompts.tokens(prompt)))

    over_prompts = jax.vmap(jax.vmap(answer, (None, None, 0)), (None, 0, 0))
    return jax.lax.map(lambda row: over_prompts(*row), (params, batch, orders))


def changes(config, error):  # [R, B, 6 + O] -> [R, 2, 6], [R, 6]
    """The change of the error by rule against random orders, as a share of theirs, on each half of
    the prompts and on all, without those that have the largest error in any order."""
    halves = np.array_split(np.arange(config.test_prompts), 2)

    def share(rows):  # [R, B', 6 + O] -> [R, 6]
        kept = rows.shape[1] - int(config.left_out * rows.shape[1])
        mild = np.argsort(rows.max(-1), axis=1, kind="stable")[:, :kept, None]
        rows = np.take_along_axis(rows, mild, axis=1)
        level = rows[:, :, len(RULES) :].mean((1, 2))
        return rows[:, :, : len(RULES)].mean(1) / level[:, None] - 1

    return np.stack([share(error[:, half]) for half in halves], axis=1), share(error)


def sort_demonstrations(config: Rules, models):
    """The Dataset of what each rule changes of the error of each stack."""
    every = stacks(config, models)
    batch, orders = sample_orders(config, jax.random.fold_in(jax.random.key(config.seed), 0))
    answers = np.asarray(batch.y_query)[:, :, None]
    measured, level = [], []
    for forward, params in every.values():
        error = (np.asarray(predictions(forward, params, batch, orders)) - answers) ** 2
        measured.append(changes(config, error))
        level.append(np.median(error[:, :, len(RULES) :], axis=(1, 2)))
    half, whole = (np.stack(part) for part in zip(*measured, strict=True))
    return xr.Dataset(
        {
            "half": (("model", "run", "half", "rule"), half),
            "change": (("model", "run", "rule"), whole),
            "level": (("model", "run"), np.stack(level)),
            "bayes": ("run", np.median(bayes_errors(config, batch), axis=1)),
        },
        {"model": list(every), "rule": list(RULES)},
    )
