"""Descent on what the first layer of trained models writes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.preprocess_then_optimise.config import FITTED, MODELS
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
from experiments.models.model import Model, forward
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from experiments.models.trained import trained
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def tokens_after(model: Model, prompt: Prompt):  # -> [n+1, D]
    """What the model's layers make of all covariates, each asked as the query, of a prompt in own
    units."""
    run = partial(forward(model.spec), head_mask=model.gates)
    own = prompts.with_scratch(prompt, model.spec.architecture.scratch)
    return probes.as_queries(run, model.params, own, model.spec.architecture.depth)


def whitened(features):  # [2 B, T, D] -> [2 B, T, D]
    """Of unit second moment over the tokens of the first half, in the directions that there are."""
    first = features[: len(features) // 2].reshape(-1, features.shape[-1])
    values, basis = jnp.linalg.eigh(first.T @ first / len(first))
    kept = values > 1e-9 * values[-1]
    gains = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return features @ (basis * gains[None])


def measure(config, models: Model, batch: Prompt, key):
    """Risks of descent on FEATURES on both halves, by step [2, F, 1, steps+1], of one seed: models
    [3] of MODELS and prompts [2 B] of its own."""
    own, scale = jax.vmap(prompts.normalised)(batch)
    keys = jax.random.split(key, 2 * config.trained_prompts)
    other = jax.vmap(probes.with_random_labels)(keys, own)

    def descend(features):  # [2 B, n+1, D] -> [2, steps+1]
        run = partial(probes.descend, num_steps=config.trained_steps, share=config.share)
        paths = scale[:, None] * jax.vmap(run)(features, own.y)
        return halves(jax.vmap(squares)(paths, batch))

    def learned(item):  # -> [3, 2, steps+1]
        model, shuffled = item
        given = own.replace(y=jnp.where(shuffled, other.y, own.y))
        first, last = (
            jax.lax.map(partial(tokens_after, model.first(layers)), given, batch_size=32)
            for layers in (1, models.spec.architecture.depth - 1)
        )
        return jax.lax.map(descend, jnp.stack([first, whitened(first), last]))

    again = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[-1:]]), models)
    shuffled = np.arange(len(MODELS) + 1) == len(MODELS)
    risks = jax.lax.map(learned, (again, shuffled)).swapaxes(0, 1)  # [3, 4, ...]
    raw = jnp.concatenate([own.x, own.x_query[:, None]], axis=1)
    untrained = jax.lax.map(descend, jnp.stack([raw, jax.vmap(probes.preprocessed)(own)]))
    of_models = risks[:, :-1].reshape(-1, *risks.shape[2:])
    return jnp.concatenate([untrained, of_models, risks[:, -1]]).swapaxes(0, 1)[:, :, None]


def compute(config, key, progress=None):
    """Entries of the Dataset: descent on FEATURES, the models themselves, and known rules."""
    ((name, spec),) = config.models
    runs = trained(spec, f"sparse models: {name}", retrain=config.retrain, progress=progress)
    used = [spec.architecture.places[place] for place in ("single", "first", "full")]
    seeds = np.flatnonzero(runs.finished[used].all(0))
    if not len(seeds):
        raise ValueError(f"{name}: every seed has a model that diverged")
    every = runs.every.in_float64()
    models = jax.tree.map(lambda leaf: np.moveaxis(leaf[used][:, seeds], 0, 1), every)  # [S, 3]
    task, size = distribution(spec.task, config.trained_n), config.trained_prompts
    drawing, tuning, shuffling = (jax.random.fold_in(key, tag) for tag in range(3))
    batches = list(draw(task, drawing, spec.training.seeds, size))
    batches = [batches[seed] for seed in seeds]
    judged_on = list(map(second_half, batches))
    of_features = jax.jit(partial(measure, config))
    of_models = jax.jit(_risks, compiler_options=moments.compiler_options())
    descents, risks = [], []
    for i, own_key in enumerate(jax.random.split(shuffling, len(seeds))):
        these = jax.tree.map(lambda leaf, i=i: leaf[i], models)
        descents.append(judged([of_features(these, batches[i], own_key)]))
        risks.append(of_models(these, judged_on[i]))
    curves, best = (np.concatenate(parts) for parts in zip(*descents, strict=True))
    judged_on = stacked(judged_on)
    tuning = draw_flat(task, tuning, config.tuning_prompts, size)
    return {
        "learned": (("seed", "features", "step"), curves),
        "learned_best": (("seed", "features"), best),
        "of_model": (("seed", "model"), np.stack(risks)),
        "of_reference": (("seed", "reference"), references(task, judged_on)),
        "of_fitted": (("seed", "fitted_rule"), fitted(spec, judged_on, tuning)),
        "diverged": spec.training.seeds - len(seeds),
        "architecture": ("model", [str(spec.architecture.variants[i]) for i in used]),
    }


def _risks(models: Model, batch: Prompt):  # [3], [B] -> [3]
    return jax.lax.map(lambda model: model.risk(batch), models)


def fitted(spec: Spec, batch: Prompt, tuning: Prompt) -> np.ndarray:  # [S, B] -> [S, 2]
    """Risks of FITTED, with as many layers as the models and prompts in units of their own; the
    layer that preprocesses is one of them. Labels are scaled back for the errors."""
    in_own_units = jax.jit(jax.vmap(prompts.normalised))
    depths = (spec.architecture.depth - 1, spec.architecture.depth)
    thetas = tune(*in_own_units(tuning), FITTED, depths)
    thetas = np.stack([thetas[0, 1], thetas[1, 0]])[:, None]  # raw has a step more
    own, scale = in_own_units(flat(batch))
    errors = tuned_errors(thetas, kinds(FITTED), own) * scale[None, None] ** 2
    return np.asarray(errors).reshape(len(FITTED), *batch.y_query.shape).mean(-1).T
