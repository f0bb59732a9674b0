"""Layers trained on all prefixes of short prompts, and judged on longer ones beside their rules."""

import dataclasses
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.recurrent.learning_curves import rules
from experiments.recurrent.learning_curves.config import (
    DEPTHS,
    LABELS,
    LAYERS,
    RULES,
    STACKED,
    TIMES,
    TOKENS,
)
from experiments.recurrent.learning_curves.train import forward_of, model_of, train
from lsa_lab.models import prefixes
from lsa_lab.prompts import Prompt, bound_tokens
from lsa_lab.store import parts
from lsa_lab.training.status import refuse_divergence


def compute(config, *, progress=None, checkpoints: Path | None = None):
    key_test, key_training = (jax.random.fold_in(jax.random.key(config.seed), i) for i in (0, 1))
    length = TIMES[-1] * config.n
    prompts, targets = longer_prompts(key_test, config, length)
    best = rules.best_constants(config)
    of_rules = rules.predictions_of_each(prompts, config, best)  # [B, r, T]

    def looks(sizes, layer, depth, key, tokens="bound"):  # the values of ``look``; the parameters
        run = train(sizes, layer, depth, key, progress, checkpoints, tokens)
        refuse_divergence(run.status, f"{layer}, {depth} layers, {tokens} tokens")
        params = jax.tree.map(lambda leaf: leaf.astype(float), run.params)
        model = model_of(layer, depth, sizes, tokens)
        values = look(params, prompts, targets, of_rules, model, sizes, tokens)
        return [*map(np.asarray, values), [str(end) for end in run.status]], params

    rows, steps = [], []
    for layer in config.layers:
        for depth in DEPTHS:
            key = jax.random.fold_in(key_training, LAYERS.index(layer))
            row, params = looks(config, layer, depth, jax.random.fold_in(key, depth))
            rows.append(row)
            if layer == "delta" and depth == DEPTHS[0]:
                steps = np.asarray(mean_steps(params, prompts, model_of(layer, depth, config)[1]))
    learned = np.stack([rules.closed_curves_of_step(config, length, step) for step in steps], 1)
    prefix = np.arange(length + 1)
    whole = _dataset(rows, prefix, layer=config.layers, depth=DEPTHS).assign(
        closed=(("rule", "prefix"), rules.closed_curves(config, length, best)),
        simulated=(("rule", "prefix"), ((of_rules - targets[:, None]) ** 2).mean(0)),
        step=("run", steps),
        closed_of_step=(("labels", "run", "prefix"), learned),
    )
    own = config.stacks
    wider = dataclasses.replace(config, steps=own.steps, width=own.width, seed=own.seed)
    rows = []
    for i, tokens in enumerate(TOKENS):
        for layer in own.layers:
            tag = 100 * i + 10 * STACKED.index(layer) + DEPTHS[-1]
            key = jax.random.fold_in(jax.random.key(own.seed), tag)
            rows.append(looks(wider, layer, DEPTHS[-1], key, tokens)[0])
    stacks = _dataset(rows, prefix, tokens=TOKENS, layer=own.layers)
    whole = whole.assign_coords(labels=list(LABELS))
    return parts.join(whole, stacks=stacks.drop_vars("distance_to_chance"))


def _dataset(rows, prefix, **grid):
    """What ``looks`` has said of each place of a grid."""
    shape, runs = tuple(map(len, grid.values())), (*grid, "run")
    columns = map(np.stack, zip(*rows, strict=True))
    values = [column.reshape(*shape, *column.shape[1:]) for column in columns]
    data = {
        "risk": ((*runs, "prefix"), values[0]),
        "distance": ((*runs, "rule"), values[1]),
        "distance_to_chance": (runs, values[2]),
        "status": (runs, values[3]),
    }
    named = {name: list(entries) for name, entries in grid.items()}
    return xr.Dataset(data, named | {"rule": list(RULES), "prefix": prefix})


def longer_prompts(key, config, length: int) -> tuple[Prompt, jax.Array]:  # [B, ...], [B, T]
    """Prompts of that many demonstrations, and w·x without noise at every x."""
    keys = jax.random.split(key, 3)
    count, d = config.test_prompts, config.d
    x = jax.random.normal(keys[0], (count, length + 1, d))
    w = jax.random.normal(keys[1], (count, d)) / jnp.sqrt(d)
    targets = jnp.einsum("btd,bd->bt", x, w)
    noise = jnp.sqrt(config.noise_var) * jax.random.normal(keys[2], (count, length))
    return Prompt(x[:, :-1], targets[:, :-1] + noise, x[:, -1], targets[:, -1]), targets


@partial(jax.jit, static_argnames=("model", "config", "tokens"))
def look(params, prompts, targets, of_rules, model, config, tokens="bound"):
    """Every run's risk after each prefix [R, T], and over the lengths in training its mean squared
    distance to each rule [R, r], and to ridge regression on the labels of another task [R].

    Predictions are cut at twice the largest label of their prompt, where one that is not finite
    stands: a state that has exploded would be all that a mean tells of.
    """
    forward = forward_of(model, tokens)
    most = 2 * jnp.abs(prompts.y).max(1, keepdims=True)
    trained = slice(1, config.n + 1)
    elsewhere = prompts.replace(y=jnp.roll(prompts.y, 1, axis=0))
    best = dict.fromkeys(RULES[1:4], (0.0, 0.0, 0.0))
    ridge = rules.predictions_of_each(elsewhere, config, best)[:, -1]

    def one_run(params):
        answer = partial(prefixes.predictions, forward, params, layout=tokens)
        answers = jax.lax.map(answer, prompts, batch_size=100)
        predicted = jnp.clip(jnp.where(jnp.isfinite(answers), answers, most), -most, most)
        gaps = predicted[:, None, trained] - of_rules[..., trained]
        chance = (predicted - ridge)[:, trained]
        risk = ((predicted - targets) ** 2).mean(0)
        return risk, (gaps**2).mean((0, 2)), (chance**2).mean()

    return jax.lax.map(one_run, params)


def mean_steps(params, prompts, shape):  # -> [R]
    """The mean step β that the first layer takes over tokens that hold a pair."""
    rows = jax.vmap(bound_tokens)(prompts)[:, 1:]  # the first holds no pair

    def of_run(params):
        raw = rows @ params.read_in.T @ params.w_step[0, 0, 0] + params.b_step[0, 0, 0]
        return shape.largest_step * jax.nn.sigmoid(raw).mean()

    return jax.lax.map(of_run, params)
