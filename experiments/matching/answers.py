"""What the learners answer after chosen demonstrations: exact ones, and trained attention (A3)."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import Model
from experiments.models.runs import Runs
from lsa_lab import estimators
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def models(config, runs: dict[str, Runs]) -> dict[str, Model]:  # leaves [R, ...]
    """The trained models of ``config.models``, a seed for each run."""
    return {name: each.models(seeds=slice(config.runs)) for name, each in runs.items()}


def squared_errors(config, by_name, batch):  # of prompts, leaves [R, B, ...] -> [learners, R, B]
    """Those of ``learners.EXACT``, then of the trained models, which compute in float32."""
    exact = np.asarray(_exact(config, batch))
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), batch)
    trained_ones = [np.asarray(_answers(model, single), float)[None] for model in by_name.values()]
    return (np.concatenate([exact, *trained_ones]) - np.asarray(batch.y_query)) ** 2


@partial(jax.jit, static_argnums=0)
def _exact(config, batch):  # -> [2, R, B]
    """Gradient descent from w = 0, which a stack of linear attention computes, and ridge, which is
    the Bayes rule where all demonstrations have one w ~ N(0, I) and Gaussian noise."""
    steps = jnp.full(config.depth, config.step)

    def answers(prompt: Prompt):
        descent = estimators.gradient_descent(prompt, steps)[-1]
        ridge = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
        return jnp.stack([descent, ridge]) @ prompt.x_query

    return jnp.moveaxis(jax.lax.map(jax.vmap(answers), batch), -1, 0)


@moments.compiled
def _answers(model, batch):  # -> [R, B]
    return jax.lax.map(lambda row: row[0].predict(row[1]), (model, batch))
