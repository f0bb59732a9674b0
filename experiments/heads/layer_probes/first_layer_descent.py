"""Descent, inside each prompt, on the tokens that a trained first layer has made of it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.each_run import over_runs
from experiments.heads.layer_probes.probing import (
    DESCENT,
    SHUFFLE,
    Case,
    batch_of,
    first_prompts,
    keys_of,
)
from experiments.models.model import Model, cut, shape, skeleton
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import transformer
from lsa_lab.prompts import Prompt

_TOGETHER = 64  # prompts that are in memory at once, each asked n + 1 times


def descents(config, case: Case) -> np.ndarray:  # [R, features, 2, steps+1]
    """Excess risks of descent on FEATURES, step after step, on each half of the prompts."""
    batch = first_prompts(batch_of(config, case.spec, DESCENT, case.runs), config.descents)
    variants = [case.variants[name].models for name in ("full", "single head")]
    first = [jax.vmap(functools.partial(_first, skeleton(case.spec)))(each) for each in variants]
    program = _descend(config.steps, config.share)
    return over_runs(program, first, batch, keys_of(config, SHUFFLE, case.runs))


def _first(spec, model: Model) -> Model:
    """The first layer alone, as a model of its own: one program for every depth."""
    return model.replace(spec=spec).first(1)


@functools.cache
def _descend(steps: int, share: float):
    """(the two models, prompts, key) of one run -> [features, 2, steps+1], compiled."""

    def risks(models, batch: Prompt, key):
        each = jax.random.split(key, len(batch.y))

        def answers(row):  # -> [features, steps+1]
            prompt, key = row
            own, scale = prompts.normalised(prompt)
            rows = _features(models, own, key)
            paths = [probes.descend(features, own.y, steps, share) for features in rows]
            return scale * jnp.stack(paths)

        size = min(_TOGETHER, len(each))
        paths = jax.lax.map(answers, (batch, each), batch_size=size)  # [B, features, steps+1]
        predicted = jax.vmap(cut, (1, None), 1)(paths.reshape(len(paths), -1), batch)
        squares = (predicted - batch.y_query[:, None]) ** 2
        return squares.reshape(2, -1, *paths.shape[1:]).mean(1).swapaxes(0, 1)

    return jax.jit(risks)


def _features(models, prompt: Prompt, key) -> list:  # of [n+1, D]
    """The features of the config, in their order, of a prompt in its own units. The label slot is
    taken out of all; but for the last, no token has seen its own label except as one of many."""
    full, single = models
    wide = prompts.with_scratch(prompt, full.spec.architecture.scratch)
    slot = jnp.eye(wide.x.shape[1] + 1)[-1:]

    def after(model, prompt):
        return probes.project_out(probes.as_queries(_forward, model, prompt), slot)

    stream = _forward(full, prompts.tokens(wide)).stream[1]
    return [
        after(full, wide),
        after(single, wide),
        jnp.concatenate([prompt.x, prompt.x_query[None]]),
        probes.preprocessed(prompt),
        after(full, probes.with_random_labels(key, wide)),
        probes.project_out(stream, slot),
    ]


def _forward(model: Model, tokens):
    return transformer.forward(model.factored(), tokens, shape(model.spec), model.gates)
