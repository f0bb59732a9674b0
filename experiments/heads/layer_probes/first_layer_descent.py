"""Descent, inside each prompt, on the tokens that a trained first layer has made of it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.layer_probes.probing import DESCENT, SHUFFLE, Case, drawn, keys, over_runs
from experiments.models import sparse_models
from experiments.models.specs import Family
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import transformer
from lsa_lab.prompts import Prompt

FEATURES = (
    "layer 1, full",
    "layer 1, single head",
    "raw covariates",
    "r_j x_j",
    "layer 1 with shuffled labels",
    "layer 1 with own labels",
)
_TOGETHER = 64  # prompts that are in memory at once, each asked n + 1 times


def descents(config, case: Case) -> np.ndarray:  # [R, features, 2, steps+1]
    """Excess risks of descent on FEATURES, step after step, on each half of the prompts."""
    batch = drawn(config, case.family, DESCENT, case.runs)
    batch = jax.tree.map(lambda leaf: leaf[:, : config.descents], batch)
    models = [
        jax.tree.map(lambda leaf: leaf[:, :1], (model.params, model.masks))  # of the first layer
        for model in (case.models["full"], case.models["single head"])
    ]
    whole = sparse_models.skeleton(case.family)
    alone = dataclasses.replace(whole, architectures=((case.family.heads,),))
    program = _descend(alone, config.steps, config.share)
    return over_runs(program, models, batch, keys(config, SHUFFLE, case.runs))


@functools.cache
def _descend(family: Family, steps: int, share: float):
    def features(models, prompt: Prompt, key) -> list:  # of [n+1, D]
        """The label slot is taken out of all of them; but for the last, no token has seen its own
        label otherwise than as one of many."""
        wide = prompts.with_scratch(prompt, family.scratch)
        slot = jnp.eye(wide.x.shape[1] + 1)[-1:]

        def forward(model, tokens):
            params, mask = model
            weights = sparse_models.factored(family, params)
            return transformer.forward(weights, tokens, sparse_models.shape(family), mask)

        def asked(model, prompt):
            return probes.project_out(probes.asked(forward, model, prompt), slot)

        full, single = models
        stream = forward(full, prompts.tokens(wide)).stream[1]
        return [
            asked(full, wide),
            asked(single, wide),
            jnp.concatenate([prompt.x, prompt.x_query[None]]),
            probes.preprocessed(prompt),
            asked(full, probes.with_random_labels(key, wide)),
            probes.project_out(stream, slot),
        ]

    def answers(models, prompt: Prompt, key):  # -> [features, steps+1]
        own, scale = prompts.normalised(prompt)
        each = features(models, own, key)
        return scale * jnp.stack([probes.descend(f, own.y, steps, share) for f in each])

    def one(models, batch: Prompt, key):  # -> [features, 2, steps+1]
        each = jax.random.split(key, len(batch.y))
        found = jax.lax.map(  # [B, features, steps+1]
            lambda one: answers(models, *one), (batch, each), batch_size=min(_TOGETHER, len(each))
        )
        cut = jax.vmap(sparse_models.cut, (1, None), 1)(found.reshape(len(found), -1), batch)
        squares = (cut - batch.y_query[:, None]) ** 2
        halves = squares.reshape(2, -1, *found.shape[1:]).mean(1)
        return halves.swapaxes(0, 1)

    return jax.jit(one)
