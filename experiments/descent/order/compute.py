"""Predictions of each layer for one prompt in many orders, and for other demonstrations; with the
relevant demonstration in every place; and with demonstrations sorted by rules."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.order.config import ASKED, CAUSAL, KINDS, Config, Place
from experiments.descent.order.rules import causal_descent, sort_demonstrations
from experiments.descent.specs import SOFTMAX
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import estimators, prompts
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights


def move_relevant(config: Place, models):
    """The Dataset of errors and influences by place."""
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


def draw(key, config):  # -> Params [R, ...], tokens [R, B, O, T, e] twice
    """Random weights, prompts in many orders, and prompts with other demonstrations of the same
    task and the same query. The first order is the one that was drawn."""
    runs, count, orders = config.runs, config.prompts, config.orders
    keys = [jax.random.fold_in(key, tag) for tag in range(4)]
    init = partial(transformer.init, config=attention(config, "softmax"))
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)

    def similar(key_weights, key_prompts):  # prompts of one task that ask one thing
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        many = jax.vmap(partial(sample, task=same))(jax.random.split(key_prompts, orders))
        query = jnp.broadcast_to(many.x_query[:1], many.x_query.shape)
        return jax.vmap(prompts.tokens)(many.replace(x_query=query))

    def shuffled(key, tokens):
        return jnp.concatenate([jax.random.permutation(key, tokens[:-1]), tokens[-1:]])

    pairs = [jax.random.split(k, (runs, count)) for k in keys[1:3]]
    fresh = jax.vmap(jax.vmap(similar))(*pairs)
    shuffle = jax.vmap(jax.vmap(jax.vmap(shuffled, (0, None))))
    permuted = shuffle(jax.random.split(keys[3], (runs, count, orders - 1)), fresh[:, :, 0])
    ordered = jnp.concatenate([fresh[:, :, :1], permuted], axis=2)
    return jax.vmap(init)(jax.random.split(keys[0], runs)), ordered, fresh


def attention(config, kernel):
    rest = dict(kernel=kernel, keys="causal", init_scale=config.scale)
    return transformer.Config(config.d + 1, config.depth, config.heads, config.key_width, **rest)


def predictions(params, tokens, config, kind):  # [T, e] -> [L]
    """ŷ after each layer. The descent is one stack for all runs."""
    if kind != "descent":
        trace = transformer.forward(params, tokens, attention(config, kind))
    else:
        stack = causal_descent(config.d, config.n, config.noise_std, config.depth)
        trace = linear_attention.forward(stack, tokens, keys="causal")
    return layer_predictions(trace)[1:]


def compute(config: Config, models, *, progress=None, checkpoints=None):
    @partial(jax.jit, static_argnums=3)
    def spread_ratios(params, ordered, fresh, kind):  # -> [R, L]
        """The spread over orders beside that over other demonstrations."""
        answer = partial(predictions, config=config, kind=kind)
        over_prompts = jax.vmap(jax.vmap(jax.vmap(answer, (None, 0)), (None, 0)))
        both = over_prompts(params, jnp.concatenate([ordered, fresh], axis=2))  # [R, B, 2 O, L]
        halves = both[:, :, : config.orders], both[:, :, config.orders :]
        spread = [layers.std(2, ddof=1) for layers in halves]  # [R, B, L]
        return jnp.median(spread[0] / spread[1], axis=1)

    batch = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    shares = np.array([spread_ratios(*batch, kind) for kind in KINDS])
    whole = xr.Dataset(
        {"share": (("kind", "run", "depth"), shares)},
        {"kind": list(KINDS), "depth": np.arange(1, config.depth + 1)},
    )
    place = move_relevant(config.place, models)
    return parts.join(whole, place=place, rules=sort_demonstrations(config.rules, models))
