"""Rules that know the task of sparse regression, for comparison on the same prompts."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, RULES, SPARSE_BAYES
from experiments.models.model import cut
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample

MULTIPLES = tuple(0.05 * 1.5**k for k in range(10))  # of σ √(2 log d / n): the Lasso's penalties
TUNING = 256  # prompts that choose among them
_TUNING_SEED = 8_043_420  # of no experiment: these prompts are never among those judged
_AT_ONCE = 64  # prompts in memory with all their supports


def predictions(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B]
    """The predictions of one of RULES, which knows everything about the task but w.

    Ridge has the penalty that is best for any rule linear in the labels that ignores directions,
    σ²d/(n E|w|²) (docs/theory, "The rotation-invariant bound"); "rotation-equivariant Bayes" is the
    best of all that ignore them. The Lasso has the penalty that is best for the task among
    MULTIPLES, judged by excess risk on TUNING prompts of its own, drawn from a fixed key at every
    call. "sparse Bayes" is exact for Gaussian non-zeros and for flat ones.
    """
    return jnp.sum(weights(rule, batch, task) * batch.x_query, axis=1)


@partial(jax.jit, static_argnums=0)
def errors(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B]
    """Squared errors, the predictions cut as those of models are."""
    return (cut(predictions(rule, batch, task), batch) - batch.y_query) ** 2


def weights(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B, d]
    """The same rules before they meet the query."""
    _check(batch, task)
    if rule == RIDGE:
        return jax.vmap(partial(_ridge, task))(batch)
    if rule == EQUIVARIANT:
        return jax.vmap(partial(_equivariant, task))(batch)
    if rule == LASSO:
        return jax.vmap(partial(estimators.lasso, penalty=lasso_penalty(task)))(batch)
    if rule == SPARSE_BAYES:
        return sparse_bayes(task, batch)
    raise ValueError(f"rule = {rule!r}: choose one of {', '.join(RULES)}")


def lasso_penalties(task: LinearTask) -> Array:  # [10]
    """The grid that the Lasso is tuned on."""
    unit = task.noise_std * math.sqrt(2 * math.log(max(task.d, 2)) / task.n)
    return unit * jnp.asarray(np.array(MULTIPLES), task.dtype)


def lasso_penalty(task: LinearTask) -> Array:  # []
    """The best for the task of the penalties on the grid (see ``predictions``)."""
    keys = jax.random.split(jax.random.key(_TUNING_SEED), TUNING)
    tuning = jax.vmap(partial(sample, task=task))(keys)

    def risk(penalty):
        weights = jax.vmap(partial(estimators.lasso, penalty=penalty))(tuning)
        return jnp.mean((jnp.sum(weights * tuning.x_query, axis=1) - tuning.y_query) ** 2)

    penalties = lasso_penalties(task)
    return penalties[jnp.argmin(jax.lax.map(risk, penalties))]


def sparse_bayes(task: LinearTask, batch: Prompt) -> Array:  # [B, d]
    """The posterior mean under the very task: nothing has a smaller risk on average."""
    given = (task.sparsity, task.weight_std, task.noise_std)
    if task.signal == "flat":
        return jax.lax.map(
            lambda prompt: estimators.flat_posterior_mean(prompt, *given),
            batch,
            batch_size=_AT_ONCE,
        )
    if task.sparsity in (None, task.d):
        return jax.vmap(partial(_ridge, task))(batch)
    given = (task.sparsity, task.weight_std**2, task.noise_std**2)
    return jax.vmap(lambda prompt: estimators.sparse_posterior_mean(prompt, *given))(batch)


def _ridge(task: LinearTask, prompt: Prompt) -> Array:  # [d]
    squared_length = (task.sparsity or task.d) * task.weight_std**2
    return estimators.rotation_equivariant_ridge(prompt, squared_length, task.noise_std)


def _equivariant(task: LinearTask, prompt: Prompt) -> Array:  # [d]
    given = (task.sparsity, task.weight_std, task.noise_std)
    return estimators.rotation_equivariant_posterior_mean(prompt, *given, signal=task.signal)


def _check(batch: Prompt, task: LinearTask) -> None:
    if batch.x.ndim != 3 or batch.x.shape[1:] != (task.n, task.d):
        raise ValueError(
            f"x has shape {batch.x.shape}: expected prompts of the task, [B, {task.n}, {task.d}]"
        )
    for name in ("covariance", "task_covariance", "prior_mean"):
        if getattr(task, name) is not None:
            raise ValueError(f"{name} is given: these rules are for x ~ N(0, I) and w around 0")
