"""Layers trained on all prefixes of short prompts, and judged on longer ones beside their rules."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.recurrent.learning_curves import rules, stacks
from experiments.recurrent.learning_curves.config import DEPTHS, LABELS, LAYERS, RULES, TIMES
from experiments.recurrent.learning_curves.train import model_of, train
from lsa_lab.models import prefixes
from lsa_lab.prompts import Prompt, bound_tokens
from lsa_lab.store import parts
from lsa_lab.training.status import refuse_divergence


def compute(config, *, progress=None, checkpoints: Path | None = None):
    import xarray as xr

    key_test, key_training = (jax.random.fold_in(jax.random.key(config.seed), i) for i in (0, 1))
    length = TIMES[-1] * config.n
    prompts, targets = longer_prompts(key_test, config, length)
    best = rules.best_constants(config)
    of_rules = rules.predictions_of_each(prompts, config, best)  # [B, r, T]
    risk, distance, chance, steps, status = [], [], [], [], []
    for i, layer in enumerate(LAYERS):
        for depth in DEPTHS:
            key = jax.random.fold_in(jax.random.fold_in(key_training, i), depth)
            run = train(config, layer, depth, key, progress, checkpoints)
            refuse_divergence(run.status, f"{layer}, {depth} layers")
            params = jax.tree.map(lambda leaf: leaf.astype(float), run.params)
            looks = look(params, prompts, targets, of_rules, model_of(layer, depth, config), config)
            for rows, values in zip((risk, distance, chance), looks, strict=True):
                rows.append(np.asarray(values))
            status.append([str(end) for end in run.status])
            if layer == "delta" and depth == DEPTHS[0]:
                steps = np.asarray(mean_steps(params, prompts, model_of(layer, depth, config)[1]))
    axes, shape = ("layer", "depth", "run"), (len(LAYERS), len(DEPTHS), config.runs)
    learned = np.stack([rules.closed_curves_of_step(config, length, step) for step in steps], 1)
    whole = xr.Dataset(
        {
            "risk": ((*axes, "prefix"), np.reshape(risk, (*shape, -1))),
            "distance": ((*axes, "rule"), np.reshape(distance, (*shape, -1))),
            "distance_to_chance": (axes, np.reshape(chance, shape)),
            "status": (axes, np.reshape(status, shape)),
            "closed": (("rule", "prefix"), rules.closed_curves(config, length, best)),
            "simulated": (("rule", "prefix"), ((of_rules - targets[:, None]) ** 2).mean(0)),
            "step": ("run", steps),
            "closed_of_step": (("labels", "run", "prefix"), learned),
        },
        {
            "layer": list(LAYERS),
            "depth": list(DEPTHS),
            "rule": list(RULES),
            "labels": list(LABELS),
            "prefix": np.arange(length + 1),
        },
    )
    more = stacks.compute(config, prompts, targets, of_rules, progress, checkpoints)
    return parts.join(whole, stacks=more)


def longer_prompts(key, config, length: int) -> tuple[Prompt, jax.Array]:  # [B, ...], [B, T]
    """Prompts of that many demonstrations, and w·x without noise at every x."""
    keys = jax.random.split(key, 3)
    count, d = config.test_prompts, config.d
    x = jax.random.normal(keys[0], (count, length + 1, d))
    w = jax.random.normal(keys[1], (count, d)) / jnp.sqrt(d)
    targets = jnp.einsum("btd,bd->bt", x, w)
    noise = jnp.sqrt(config.noise_var) * jax.random.normal(keys[2], (count, length))
    return Prompt(x[:, :-1], targets[:, :-1] + noise, x[:, -1], targets[:, -1]), targets


@partial(jax.jit, static_argnames=("model", "config"))
def look(params, prompts, targets, of_rules, model, config):  # -> [R, T], [R, r], [R]
    """Every run's risk after each prefix, and over the lengths in training its mean squared
    distance to each rule, and to ridge regression on the labels of another task.

    Predictions are cut at twice the largest label of their prompt, where one that is not finite
    stands: a state that has exploded would be all that a mean tells of.
    """
    module, shape = model
    forward = partial(module.forward, config=shape)
    most = 2 * jnp.abs(prompts.y).max(1, keepdims=True)
    trained = slice(1, config.n + 1)
    elsewhere = prompts.replace(y=jnp.roll(prompts.y, 1, axis=0))
    best = dict.fromkeys(RULES[1:4], (0.0, 0.0, 0.0))
    ridge = rules.predictions_of_each(elsewhere, config, best)[:, -1]

    def one_run(params):
        answer = partial(prefixes.predictions, forward, params)
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
