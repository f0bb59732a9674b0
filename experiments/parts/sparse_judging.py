"""Models and rules of sparse regression, judged on the same prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.configs.sparse_models import Family
from experiments.parts import sparse_models, sparse_rules
from experiments.parts.sparse_training import Trained
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


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


def rule_risk(family: Family, rule: str, batch: Prompt) -> float:
    """The mean excess risk of one of ``sparse_rules.RULES``."""
    law = sparse_models.law(family, batch.x.shape[1])
    predicted = jax.jit(lambda batch: sparse_rules.predictions(rule, batch, law))(batch)
    return float(((sparse_models.cut(predicted, batch) - batch.y_query) ** 2).mean())
