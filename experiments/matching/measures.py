"""Pools, small learners trained on them, and errors after subsets: shared by the theme (A3).

The small learners are a linear model w·x, the linear proxy, and a prefix: trainable tokens in the
place of a frozen model's demonstrations. Gradients of examples are taken along their training.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import training
from experiments.models.model import Model
from experiments.models.specs import dense_spec
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, moments
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools


def draw_pools(task, queries, keys):  # -> Pool [R, m, ...], Pool [R, K queries, ...]
    """Draw a pool for each key, and as many queries of each of its clusters."""

    def draw(key):
        key_pool, key_queries = jax.random.split(key)
        pool = pools.sample(key_pool, task)
        query_pool = pools.queries(key_queries, task, pool.population, queries)
        return pool.replace(population=None), query_pool.replace(population=None)

    return jax.jit(jax.vmap(draw))(keys)


def train_path(loss, recipe, starts, keys, rows, label):  # leaves [R, ...] -> [R, C, ...]
    """Train a learner on each pool; return its checkpoints, the first before the first step.

    ``rows`` begin with the pools' x and y; loss(learner, batch, row) is that of one pool.
    """
    m = rows[0].shape[1]

    def sample(key, row):
        return prefix.sample_batch(key, row[:2], recipe.batch)

    parts = loss, sample, recipe.optimizer(m), recipe.steps(m), starts, keys, rows
    watch = dict(watch=lambda learner: learner, chunk=recipe.chunk(m))
    run = training.fit_runs(label, *parts, needs_all=True, **watch)
    return jnp.asarray(run.history["watch"][:, :-1])


def train_linear(pool, recipe, keys, label):  # Pool [R, m, ...] -> [R, C, d]
    """Train the linear proxy on each pool from w = 0; return its checkpoints."""

    def loss(weights, batch, _):
        return prefix.linear_loss(weights, pools.Pool(*batch))

    starts = jnp.zeros((len(keys), pool.x.shape[2]), pool.x.dtype)
    return train_path(loss, recipe, starts, keys, (pool.x, pool.y), label)


def train_prefixes(models, pool, recipe, keys, label):  # Model [R], Pool [R, m] -> [R, C, k, e]
    """Train a prefix of each model on its pool; return the checkpoints."""
    e = pool.x.shape[2] + 1
    key_pairs = jax.vmap(jax.random.split)(keys)
    start = partial(prefix.init, prefix_length=recipe.prefix_length, e=e)
    starts = jax.jit(jax.vmap(start))(key_pairs[:, 0])

    def loss(tokens, batch, row):
        return prefix.mean_loss(squared_error, row[2], tokens, batch)

    return train_path(loss, recipe, starts, key_pairs[:, 1], (pool.x, pool.y, models), label)


def build_one_layer(d, n, noise_std, count) -> Model:  # leaves [count, ...]
    """Return the best single step of descent, the same for all."""
    params = constructions.one_step_optimum(jnp.eye(d), n, noise_std**2)
    recipe = dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
    model = Model(dense_spec("linear", d, n, 1, training=recipe), params)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), model)


def answer_with_prefix(model: Model, tokens, x):  # [k, e], [B, d] -> [B]
    """Return the model's answers to each x, with the tokens as demonstrations."""
    rows = jnp.broadcast_to(tokens, (len(x), *tokens.shape))
    batch = prompts.Prompt(rows[..., :-1], rows[..., -1], x, jnp.zeros_like(x[:, 0]))
    return model.predict(batch)


def squared_error(tokens, model, example):  # for prefix.mean_loss and prefix.example_gradients
    x, y = example
    return (answer_with_prefix(model, tokens, x[None])[0] - y) ** 2 / 2


def mark_members(indices, m):  # [..., n] -> [..., m]
    chosen = jnp.zeros((*jnp.shape(indices)[:-1], m))
    return jnp.put_along_axis(chosen, jnp.asarray(indices), 1.0, axis=-1, inplace=False)


def pad_features(*kinds):  # [m, p] each -> [F, m, largest p]
    """Stack kinds of features, padded with zeros, which change no distance."""
    most = max(rows.shape[1] for rows in kinds)
    return jnp.stack([jnp.pad(rows, ((0, 0), (0, most - rows.shape[1]))) for rows in kinds])


def squared_errors(config, pool, chosen, *queries):  # [S, m], Pools [Q] -> arrays [S, Q]
    """Return those of descent after each subset: config.depth steps of config.step."""
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    rows = pools.tokens(pool)

    def read_weights(chosen):
        moment = rows.T @ (chosen[:, None] * rows) / chosen.sum()
        return -moments.layer_maps(stack, moment)[-1, -1, :-1]

    weights = jax.lax.map(read_weights, chosen, batch_size=32)
    return [(weights @ part.x.T - part.y[None]) ** 2 for part in queries]


def best_step(n, d, noise_std):  # of a single step of descent
    return 1 / (1 + (1 + d + noise_std**2) / n)


@jax.jit
def answer_by_rules(steps, noise_std, batch):  # [L], [], Prompt [R, B] -> [2, R, B]
    """Return the answers of gradient descent from 0 and of ridge regression, the Bayes rule."""

    def answer(prompt):
        descent = estimators.gradient_descent(prompt, steps)[-1]
        ridge = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
        return jnp.stack([descent, ridge]) @ prompt.x_query

    return jnp.moveaxis(jax.lax.map(jax.vmap(answer), batch), -1, 0)


def average_draws(values, starts, axis=1, mean=np.mean):  # [..., S, ...] -> [..., rule, ...]
    """Average over the subsets of each rule; those of rules with several begin at ``starts``."""
    once, *draws = np.split(values, starts, axis)
    return np.concatenate([once, *(mean(part, axis, keepdims=True) for part in draws)], axis)
