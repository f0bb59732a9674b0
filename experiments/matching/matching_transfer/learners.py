"""Small learners, a linear model and prefixes in front of models, trained on a pool or a subset;
and the models that are taught by the chosen subsets, with their errors.

A learner is answers(model, z, x) -> ŷ: z is what is trained, and the model is frozen.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.matching.checkpoints import watched
from experiments.matching.subsets import bayes_error, best_step
from experiments.models.model import Model
from experiments.models.specs import dense_spec
from lsa_lab import prompts
from lsa_lab.models import constructions, moments
from lsa_lab.selection import prefix
from lsa_lab.training import Training


def one_layer(config):
    """The best single step."""
    return constructions.one_step_optimum(jnp.eye(config.d), config.n, config.noise_std**2)


@partial(jax.jit, static_argnums=0)
def constructed_errors(config, x, y, queries):
    """Errors [1 + descents, R, P, S] of one layer and of each descent, whose answers are linear in
    the query, after subsets x [R, P, S, n, d] and y, on queries [R, P, Q, d] and their answers; the
    first layers of the longest descent are the shorter ones."""
    steps = jnp.full(max(config.descents), best_step(config))
    descent = constructions.gradient_descent(steps, config.d)

    def errors(x, y, x_queries, y_queries):
        moment = prompts.second_moment(prompts.Prompt(x, y, x[0], y[0]))
        shallow = moments.layer_maps(one_layer(config), moment)
        deep = moments.layer_maps(descent, moment)
        maps = jnp.stack([shallow[1], *(deep[depth] for depth in config.descents)])
        weights = -maps[:, -1, :-1]
        return ((weights @ x_queries.T - y_queries[None]) ** 2).mean(1)

    over_pools = jax.vmap(jax.vmap(errors, (0, 0, None, None)))
    return jnp.moveaxis(jax.lax.map(lambda row: over_pools(*row), (x, y, *queries)), -1, 0)


@partial(jax.jit, static_argnums=0)
def bayes_errors(config, x, y, x_queries, y_queries):  # as for ``constructed_errors`` -> [R, P, S]
    """Mean squared error of the Bayes rule on the queries of each pool, after every subset."""
    over_pools = jax.vmap(jax.vmap(partial(bayes_error, config), (0, 0, None, None)))
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


def one_layer_model(config, count) -> Model:  # leaves [count, ...]
    """The best single step, the same for all."""
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
    model = Model(dense_spec("linear", config.d, config.n, 1, training=training), one_layer(config))
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), model)


def linear_answers(_, z, x):  # [d], [B, d] -> [B]
    return x @ z


def prefix_answers(model, z, x):  # [k, e], [B, d] -> [B]
    """The model's, with the tokens of z as its demonstrations."""
    rows = jnp.broadcast_to(z, (len(x), *z.shape))
    batch = prompts.Prompt(rows[..., :-1], rows[..., -1], x, jnp.zeros_like(x[:, 0]))
    return model.predict(batch)


def squared_error(z, model, example):  # for ``prefix.mean_loss`` and ``example_gradients``
    x, y = example
    return (prefix_answers(model, z, x[None])[0] - y) ** 2 / 2


def prefix_path(config, models, pool, key, label, progress):  # leaves [G, ...] -> [G, C, k, e]
    """The prefix of a frozen model along its training on each pool, from before the first step."""
    key_start, key_data = (jax.random.fold_in(key, tag) for tag in range(2))
    training = Training(
        loss=lambda z, batch, row: prefix.mean_loss(squared_error, row[2], z, batch),
        sample=lambda key, row: prefix.sample_batch(key, row[:2], min(64, config.m)),
        optimizer=lambda _: optax.adam(config.prefix_rate),
        steps=config.prefix_steps,
        label=f"matching_transfer: {label}",
    )
    keys, chunk = jax.random.split(key_data, len(pool.y)), config.prefix_steps // config.checkpoints
    start, rows = prefix_starts(config, len(pool.y), key_start), (pool.x, pool.y, models)
    return watched(training, start, keys, rows, chunk, progress)


def tune(config, answers, models, start, *subsets):  # leaves [R, ...] -> [R, P, S]
    """Errors on each pool's queries after steps of Adam on each subset alone, all examples in each.

    ``subsets``: x [R, P, S, n, d], y, and the queries' x and y."""
    optimizer = optax.adam(config.prefix_rate)

    def tuned_error(model, start, x, y, x_queries, y_queries):
        def loss(z):
            return ((answers(model, z, x) - y) ** 2).mean() / 2

        def step(carry, _):
            z, state = carry
            updates, state = optimizer.update(jax.grad(loss)(z), state)
            return (optax.apply_updates(z, updates), state), None

        carry = (start, optimizer.init(start))
        (z, _), _ = jax.lax.scan(step, carry, None, length=config.tuned_steps)
        return ((answers(model, z, x_queries) - y_queries) ** 2).mean()

    over_subsets = jax.vmap(tuned_error, (None, None, 0, 0, None, None))
    over_pools = jax.vmap(over_subsets, (None, None, 0, 0, 0, 0))
    program = moments.compiled(lambda *rows: jax.lax.map(lambda row: over_pools(*row), rows))
    with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
        return np.asarray(program(models, start, *subsets), float)


def prefix_starts(config, count, key):  # -> [count, k, e]
    start = partial(prefix.init, prefix_length=config.prefix_length, e=config.d + 1)
    return jax.jit(jax.vmap(start))(jax.random.split(key, count))
