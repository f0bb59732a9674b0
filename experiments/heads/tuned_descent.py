"""Gradient descent with a step size for each step, chosen on prompts of its own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.models.model import cut
from lsa_lab import estimators, prompts
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample

_TUNING_SEED = 8_043_421  # of no experiment: these prompts are never among those judged


def errors(batch: Prompt, task: LinearTask, steps: int, tuning: int) -> np.ndarray:  # [B]
    """Squared errors after ``steps`` steps, whose sizes suit ``tuning`` other prompts best.

    Prompts are read as they stand or in units of their own, whichever is better on these.
    """
    from scipy.optimize import minimize

    keys = jax.random.split(jax.random.key(_TUNING_SEED), tuning)
    others, start = jax.jit(jax.vmap(partial(sample, task=task)))(keys), np.full(steps, 0.3)
    ends = {
        own_units: minimize(_risk, start, (own_units, others), "L-BFGS-B", jac=True)
        for own_units in (False, True)
    }
    own_units = min(ends, key=lambda units: ends[units].fun)
    predicted = _predictions(ends[own_units].x, own_units, batch)
    return np.asarray((cut(predicted, batch) - batch.y_query) ** 2)


@partial(jax.jit, static_argnums=1)
def _predictions(step_sizes: Array, own_units: bool, batch: Prompt) -> Array:  # [steps] -> [B]
    def of_prompt(prompt: Prompt) -> Array:
        read, scale = prompts.normalised(prompt) if own_units else (prompt, 1.0)
        return scale * (estimators.gradient_descent(read, step_sizes)[-1] @ read.x_query)

    return jax.vmap(of_prompt)(batch)


@partial(jax.jit, static_argnums=1)
@jax.value_and_grad
def _risk(step_sizes: Array, own_units: bool, batch: Prompt) -> Array:  # []
    return jnp.mean((_predictions(step_sizes, own_units, batch) - batch.y_query) ** 2)
