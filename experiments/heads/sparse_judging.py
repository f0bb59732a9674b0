"""Models and rules of sparse regression, judged on the same prompts."""

from functools import partial

import jax
import numpy as np

from experiments.heads import sparse_rules
from experiments.models import tasks
from experiments.models.model import Model, cut
from experiments.models.specs import Task
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask


def prompts_of(config, task: Task, n: int) -> Prompt:
    """Prompts of n demonstrations, for a config with ``seed`` and ``test_prompts``."""
    key = jax.random.fold_in(jax.random.key(config.seed), n)
    return tasks.draw(key, tasks.distribution(task, n), config.test_prompts)


def risks(models: Model, batch: Prompt) -> np.ndarray:  # leaves [A, S, ...] -> [A, S]
    """The mean excess risk of every run, one after the other in one program."""

    @partial(jax.jit, compiler_options=moments.compiler_options())
    def over(models, batch):
        by_seed = partial(jax.lax.map, lambda model: model.risk(batch))
        return jax.lax.map(by_seed, models)

    return np.asarray(over(models, batch))


@partial(jax.jit, static_argnums=0)
def rule_errors(rule: str, task: LinearTask, batch: Prompt) -> jax.Array:  # [B]
    """Squared errors of one of ``sparse_rules.RULES``, its predictions cut as those of models."""
    predicted = cut(sparse_rules.predictions(rule, batch, task), batch)
    return (predicted - batch.y_query) ** 2
