"""Mean excess risks of trained models and of rules that know the task, on the same prompts."""

from functools import cache, partial

import jax
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.rule_names import RULES
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def pairs_of(config, task) -> list:
    """Prompts [B] of every length, and their task."""
    own = [tasks.distribution(task, n) for n in config.shots]
    return [(prompts_of(config, task), task) for task in own]


def prompts_of(config, task) -> Prompt:  # [B]
    key = jax.random.fold_in(jax.random.key(config.seed), task.n)
    return tasks.draw(key, task, config.test_prompts)


def risks_of(runs, pairs) -> np.ndarray:  # [A, S, shots]
    """The mean excess risk of every run, one after the other; models whose layers have as many
    heads share a program."""
    models = jax.vmap(jax.vmap(Model.plain))(runs.all_models.cast_float64())
    return np.stack([np.asarray(_risks()(models, batch)) for batch, _ in pairs], axis=-1)


@cache
def _risks():
    """(models [A, S, ...], prompts [B]) -> [A, S], compiled."""

    def risks(models, batch):
        by_seed = partial(jax.lax.map, lambda model: model.risk(batch))
        return jax.lax.map(by_seed, models)

    return jax.jit(risks, compiler_options=moments.compiler_options())


def risks_of_rules(pairs) -> np.ndarray:  # [rules, shots]
    errors = sparse_rules.errors
    return np.array([[float(errors(rule, *pair).mean()) for pair in pairs] for rule in RULES])
