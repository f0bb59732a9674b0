"""Descent on what the first layer of trained models writes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.each_run import run
from experiments.heads.preprocess_then_optimise import descents
from experiments.heads.preprocess_then_optimise.config import FITTED, MODELS
from experiments.heads.white_tokens import whitened
from experiments.models.model import Model, forward
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def tokens_after(model: Model, prompt: Prompt):  # -> [n+1, D]
    """What the model's first layer makes of all covariates, each asked as the query, of a prompt in
    own units."""
    first = model.first(1)
    masked = partial(forward(first.spec), head_mask=first.gates)
    own = prompts.with_scratch(prompt, first.spec.architecture.scratch)
    return probes.as_queries(masked, first.params, own, 1)


def measure(config, models: Model, batch: Prompt, key):
    """Risks of descent on FEATURES on both halves, by step [2, F, 1, steps+1], of one seed:
    models [3] of MODELS and prompts [2 B] of its own."""
    own, scale = jax.vmap(prompts.normalised)(batch)
    keys = jax.random.split(key, 2 * config.trained_prompts)
    other = jax.vmap(probes.with_random_labels)(keys, own)

    def descend(features):  # [2 B, n+1, D] -> [2, steps+1]
        path = partial(probes.descend, num_steps=config.trained_steps, share=config.share)
        paths = scale[:, None] * jax.vmap(path)(features, own.y)
        return descents.halves(jax.vmap(descents.squares)(paths, batch))

    def learned(item):  # -> [2, steps+1]
        model, shuffled = item
        given = own.replace(y=jnp.where(shuffled, other.y, own.y))
        return descend(whitened(jax.lax.map(partial(tokens_after, model), given, batch_size=32)))

    again = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[-1:]]), models)
    shuffled = np.arange(len(MODELS) + 1) == len(MODELS)
    raw = jnp.concatenate([own.x, own.x_query[:, None]], axis=1)
    untrained = jax.lax.map(descend, jnp.stack([raw, jax.vmap(probes.preprocessed)(own)]))
    of_models = jax.lax.map(learned, (again, shuffled))
    return jnp.concatenate([untrained, of_models]).swapaxes(0, 1)[:, :, None]


def variables(config, trained: dict, key) -> dict:
    """Variables of the Dataset: descent on features, the models themselves, and known rules."""
    ((name, runs),) = trained.items()
    spec = runs.spec
    used = [spec.architecture.places[place] for place in ("single", "first", "full")]
    seeds = np.flatnonzero(runs.finished[used].all(0))
    if not len(seeds):
        raise ValueError(f"{name}: every seed has a model that diverged")
    every = runs.every.in_float64()
    models = jax.tree.map(lambda leaf: np.moveaxis(leaf[used][:, seeds], 0, 1), every)  # [S, 3]
    task, size = distribution(spec.task, config.trained_n), config.trained_prompts
    key_runs, key_tuning, key_shuffling = (jax.random.fold_in(key, tag) for tag in range(3))
    batches = list(descents.draw(task, key_runs, spec.training.seeds, size))
    batches = [batches[seed] for seed in seeds]
    of_features = jax.jit(partial(measure, config))
    rows = []
    for i, key_of_seed in enumerate(jax.random.split(key_shuffling, len(seeds))):
        rows.append(descents.chosen([of_features(run(models, i), batches[i], key_of_seed)]))
    curves, best = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    batch = descents.judged_on(batches)
    tuning = descents.draw_flat(task, key_tuning, config.tuning_prompts, size)
    return {
        "learned": (("seed", "features", "step"), curves),
        "learned_best": (("seed", "features"), best),
        "of_model": (("seed", "model"), risks(models, batch)),
        "of_reference": (("seed", "reference"), descents.references(task, batch)),
        "of_fitted": (("seed", "fitted_rule"), fitted(spec, batch, tuning)),
        "diverged": spec.training.seeds - len(seeds),
        "architecture": ("model", [str(spec.architecture.variants[i]) for i in used]),
    }


def risks(models: Model, batch: Prompt) -> np.ndarray:  # [S, 3], [S, B] -> [S, 3]
    of_seed = jax.jit(
        lambda models, batch: jax.lax.map(lambda model: model.risk(batch), models),
        compiler_options=moments.compiler_options(),
    )
    return np.stack([of_seed(run(models, i), run(batch, i)) for i in range(len(batch.y))])


def fitted(spec: Spec, batch: Prompt, tuning: Prompt) -> np.ndarray:  # [S, B] -> [S, 2]
    """Risks of FITTED, with as many layers as the models and prompts in units of their own; the
    layer that preprocesses is one of them. Labels are scaled back for the errors."""
    in_own_units = jax.jit(jax.vmap(prompts.normalised))
    depths = (spec.architecture.depth - 1, spec.architecture.depth)
    thetas = descents.tune(*in_own_units(tuning), FITTED, depths)
    thetas = np.stack([thetas[0, 1], thetas[1, 0]])[:, None]  # raw has a step more
    own, scale = in_own_units(descents.flat(batch))
    errors = (
        descents.tuned_errors(thetas, descents.normalised(FITTED), own) * scale[None, None] ** 2
    )
    return np.asarray(errors).reshape(len(FITTED), *batch.y_query.shape).mean(-1).T
