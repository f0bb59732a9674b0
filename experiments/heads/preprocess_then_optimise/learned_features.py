"""Descent on what the first layer of trained models writes."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.preprocess_then_optimise.descent_risks import (
    draw,
    draw_flat,
    flat,
    references,
    second_half,
    stacked,
)
from experiments.heads.preprocess_then_optimise.preprocessing import (
    halves,
    judged,
    kinds,
    squares,
    tune,
    tuned_errors,
)
from experiments.models import sparse_models
from experiments.models.sparse_training import trained
from experiments.models.specs import FAMILIES, Family
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.prompts import Prompt

MODELS = ("single head", "first layer only", "all heads")  # with h heads in which layers
READ = ("", ", white", ", before the last layer")  # what is descended on: layer 1, if not said
FEATURES = (
    "raw",
    "preprocessed",
    *(name + how for how in READ for name in MODELS),
    *("shuffled labels" + how for how in READ),
)
FITTED = ("raw", "mixed")


def chosen(family: Family) -> list[int]:
    """Which architectures are looked at: (1, ..., 1), (h, 1, ..., 1) and the last one."""
    return [family.named[name] for name in ("single", "first", "full")]


def tokens_after(family: Family, layer: int, params, head_mask, prompt: Prompt):  # -> [n+1, D]
    """What layers make of all covariates, each asked as the query, of a prompt in own units."""
    layers = jax.tree.map(lambda leaf: leaf[:layer], params)
    config = dataclasses.replace(sparse_models.shape(family), num_layers=layer)

    def forward(layers, tokens):
        if isinstance(layers, linear_attention.Params):  # merged: a quarter of the work
            return linear_attention.forward(layers, tokens, head_mask=head_mask[:layer])
        return transformer.forward(layers, tokens, config, head_mask[:layer])

    own = prompts.with_scratch(prompt, family.scratch)
    return probes.asked(forward, layers, own, layer)


def whitened(features):  # [2 B, T, D] -> [2 B, T, D]
    """Of unit second moment over the tokens of the first half, in the directions that there are."""
    first = features[: len(features) // 2].reshape(-1, features.shape[-1])
    values, basis = jnp.linalg.eigh(first.T @ first / len(first))
    kept = values > 1e-9 * values[-1]
    gains = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return features @ (basis * gains[None])


def measure(config, params, batch: Prompt, key):
    """Of one seed, with params [3, ...] of MODELS and prompts [2 B] of its own: risks of descent on
    FEATURES on both halves, by step [2, F, 1, steps+1]."""
    family = FAMILIES[config.families][config.family]
    own, scale = jax.vmap(prompts.normalised)(batch)
    keys = jax.random.split(key, 2 * config.trained_prompts)
    other = jax.vmap(probes.with_random_labels)(keys, own)

    def descend(features):  # [2 B, n+1, D] -> [2, steps+1]
        run = partial(probes.descend, num_steps=config.trained_steps, share=config.share)
        paths = scale[:, None] * jax.vmap(run)(features, own.y)
        return halves(jax.vmap(squares)(paths, batch))

    def learned(item):  # -> [3, 2, steps+1]
        weights, mask, shuffled = item
        told = own.replace(y=jnp.where(shuffled, other.y, own.y))
        first, last = (
            jax.lax.map(partial(tokens_after, family, layer, weights, mask), told, batch_size=32)
            for layer in (1, family.depth - 1)
        )
        return jax.lax.map(descend, jnp.stack([first, whitened(first), last]))

    gates = jnp.asarray(sparse_models.masks(family)[chosen(family)])
    items = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[-1:]]), (params, gates))
    shuffled = np.arange(len(MODELS) + 1) == len(MODELS)
    found = jax.lax.map(learned, (*items, shuffled)).swapaxes(0, 1)  # [3, 4, ...]
    raw = jnp.concatenate([own.x, own.x_query[:, None]], axis=1)
    known = jax.lax.map(descend, jnp.stack([raw, jax.vmap(probes.preprocessed)(own)]))
    of_models = found[:, :-1].reshape(-1, *found.shape[2:])
    return jnp.concatenate([known, of_models, found[:, -1]]).swapaxes(0, 1)[:, :, None]


def compute(config, key, progress=None):
    """Entries of the Dataset: descent on FEATURES, the models themselves, and known rules."""
    made = trained(config.families, config.family, config.retrain, progress)
    family, used = made.family, chosen(made.family)
    seeds = np.flatnonzero(made.finished[used].all(0))
    if not len(seeds):
        raise ValueError(f"family {config.family!r}: every seed has a model that diverged")
    params = jax.tree.map(lambda leaf: np.moveaxis(leaf[used][:, seeds], 0, 1), made.params)
    law, size = sparse_models.law(family, config.trained_n), config.trained_prompts
    drawing, tuning, shuffling = (jax.random.fold_in(key, tag) for tag in range(3))
    drawn = [list(draw(law, drawing, family.seeds, size))[seed] for seed in seeds]
    judged_on = list(map(second_half, drawn))
    of_features = jax.jit(partial(measure, config))
    of_models = jax.jit(partial(models_risks, family), compiler_options=moments.compiler_options())
    found, models = [], []
    for i, own_key in enumerate(jax.random.split(shuffling, len(seeds))):
        these = jax.tree.map(lambda leaf, i=i: leaf[i], params)
        found.append(judged([of_features(these, drawn[i], own_key)]))
        models.append(of_models(these, judged_on[i]))
    curves, best = (np.concatenate(parts) for parts in zip(*found, strict=True))
    judged_on = stacked(judged_on)
    tuning = draw_flat(law, tuning, config.tuning_prompts, size)
    return {
        "learned": (("seed", "features", "step"), curves),
        "learned_best": (("seed", "features"), best),
        "of_model": (("seed", "model"), np.stack(models)),
        "of_reference": (("seed", "reference"), references(law, judged_on)),
        "of_fitted": (("seed", "fitted_rule"), fitted(family, judged_on, tuning)),
        "diverged": family.seeds - len(seeds),
        "architecture": ("model", [str(family.architectures[i]) for i in used]),
    }


def models_risks(family: Family, params, batch: Prompt):  # [3, ...], [B] -> [3]
    gates = sparse_models.masks(family)[chosen(family)]
    return jax.lax.map(
        lambda item: sparse_models.risk(family, item[0], batch, item[1]), (params, gates)
    )


def fitted(family: Family, batch: Prompt, tuning: Prompt) -> np.ndarray:  # [S, B] -> [S, 2]
    """Risks of FITTED, with as many layers as the models and prompts in units of their own; the
    layer that preprocesses is one of them. Labels are scaled back for the errors."""
    in_own_units = jax.jit(jax.vmap(prompts.normalised))
    depths = (family.depth - 1, family.depth)
    thetas = tune(*in_own_units(tuning), FITTED, depths)
    thetas = np.stack([thetas[0, 1], thetas[1, 0]])[:, None]  # raw has a step more
    own, scale = in_own_units(flat(batch))
    errors = tuned_errors(thetas, kinds(FITTED), own) * scale[None, None] ** 2
    return np.asarray(errors).reshape(len(FITTED), *batch.y_query.shape).mean(-1).T
