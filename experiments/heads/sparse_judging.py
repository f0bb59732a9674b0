"""Models and rules of sparse regression, judged on the same prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import sparse_rules
from experiments.models import sparse_models
from experiments.models.sparse_training import Trained
from experiments.models.specs import Family
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask


def drawn(config, family: Family, n: int) -> Prompt:
    """Prompts of n demonstrations, for a config with ``seed`` and ``test_prompts``."""
    key = jax.random.fold_in(jax.random.key(config.seed), n)
    return sparse_models.draw(family, key, n, config.test_prompts)


def risks(made: Trained, batch: Prompt) -> np.ndarray:  # [A, S]
    """The mean excess risk of every run, one after the other in one program."""
    masks = jnp.asarray(sparse_models.masks(made.family))

    @partial(jax.jit, compiler_options=moments.compiler_options())
    def over(params, batch):
        def architecture(row):
            params, mask = row
            return jax.lax.map(
                lambda one: sparse_models.risk(made.family, one, batch, mask), params
            )

        return jax.lax.map(architecture, (params, masks))

    return np.asarray(over(made.params, batch))


@partial(jax.jit, static_argnums=0)
def rule_errors(rule: str, law: LinearTask, batch: Prompt) -> jax.Array:  # [B]
    """Squared errors of one of ``sparse_rules.RULES``, its predictions cut as those of models."""
    predicted = sparse_models.cut(sparse_rules.predictions(rule, batch, law), batch)
    return (predicted - batch.y_query) ** 2
