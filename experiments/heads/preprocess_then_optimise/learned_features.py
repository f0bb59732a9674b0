"""Descent on what the first layer of trained models writes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.each_run import run
from experiments.heads.preprocess_then_optimise import descents
from experiments.heads.white_tokens import whitened
from experiments.models.model import Model, forward
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


def measure(config, models: Model, batch: Prompt):
    """Risks of descent on FEATURES on both halves, by step [2, F, 1, steps+1], of one seed:
    models [3] of MODELS and prompts [2 B] of its own."""
    own, scale = jax.vmap(prompts.normalised)(batch)

    def descend(features):  # [2 B, n+1, D] -> [2, steps+1]
        path = partial(probes.descend, num_steps=config.trained_steps, share=config.share)
        paths = scale[:, None] * jax.vmap(path)(features, own.y)
        return descents.halves(jax.vmap(descents.squares)(paths, batch))

    def learned(model):  # -> [2, steps+1]
        return descend(whitened(jax.lax.map(partial(tokens_after, model), own, batch_size=32)))

    raw = jnp.concatenate([own.x, own.x_query[:, None]], axis=1)
    untrained = jax.lax.map(descend, jnp.stack([raw, jax.vmap(probes.preprocessed)(own)]))
    return jnp.concatenate([untrained, jax.lax.map(learned, models)]).swapaxes(0, 1)[:, :, None]


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
    batches = list(descents.draw(task, jax.random.fold_in(key, 0), spec.training.seeds, size))
    batches, program = [batches[seed] for seed in seeds], jax.jit(partial(measure, config))
    rows = [descents.chosen([program(run(models, i), own)]) for i, own in enumerate(batches)]
    curves, best = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    batch = descents.judged_on(batches)
    return {
        "learned": (("seed", "features", "step"), curves),
        "learned_best": (("seed", "features"), best),
        "of_model": (("seed", "model"), risks(models, batch)),
        "of_reference": (("seed", "reference"), descents.references(task, batch)),
        "diverged": spec.training.seeds - len(seeds),
        "architecture": ("model", [str(spec.architecture.variants[i]) for i in used]),
    }


def risks(models: Model, batch: Prompt) -> np.ndarray:  # [S, 3], [S, B] -> [S, 3]
    by_model = jax.jit(
        lambda models, batch: jax.lax.map(lambda model: model.risk(batch), models),
        compiler_options=moments.compiler_options(),
    )
    return np.stack([by_model(run(models, i), run(batch, i)) for i in range(len(batch.y))])
