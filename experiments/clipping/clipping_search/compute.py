"""Does A2's search for a clipping rate find models that are better on prompts it has not seen?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_search.config import SEARCHES, TRAINED, Config
from experiments.clipping.transformer_config import PARTS
from experiments.models import stacks
from lsa_lab.analyses import clipping


def searches(config):  # {name: (risk, params, validation, test) -> Search}
    attention, mlp = PARTS.values()
    first = partial(clipping.search, rates=config.rates, top_k=config.top_k)
    wide = dict(rates=config.rates, modules=(attention, mlp))
    ways = (
        partial(first, modules=attention),
        partial(first, modules=mlp),
        partial(clipping.search_everywhere, **wide),
        partial(clipping.compose, **wide),
    )
    return dict(zip(SEARCHES, ways, strict=True))


def laws(config, stack):
    """The tasks by name; all have prompts as large as w ~ N(0, I) gives but for the scale of x."""
    law = stacks.task(stack).replace(covariance=jnp.eye(config.d, dtype=jnp.float32))
    return {
        TRAINED: law,
        "no noise": law.replace(noise_std=0.0),
        f"noise {config.noisy:g}": law.replace(noise_std=config.noisy),
        f"{config.short} shots": law.replace(n=config.short),
        f"inputs × {config.small:g}": law.replace(covariance=config.small**2 * law.covariance),
        f"inputs × {config.large:g}": law.replace(covariance=config.large**2 * law.covariance),
        f"{config.sparsity} of {config.d} weights": law.replace(
            sparsity=config.sparsity, weight_std=(config.d / config.sparsity) ** 0.5
        ),
    }


@partial(jax.jit, static_argnums=(2, 3))
def draw(keys, law, size, n):  # -> Prompt [R, B]
    """Prompts of n demonstrations, each as often as it takes: softmax reads a demonstration given
    k times as it reads it once, if all are given k times."""
    batch = jax.vmap(partial(stacks.draw, law=law, size=size))(keys)
    repeats = n // law.n
    return batch.replace(x=jnp.tile(batch.x, (1, 1, repeats, 1)), y=jnp.tile(batch.y, repeats))


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack, watched, status = trained_models.transformers(config, "clipping_search", progress)
    params, risk = trained_models.final(watched), trained_models.squared_error(stack)
    runs, tasks, ways = len(params.w_q), laws(config, stack), searches(config)
    root = jax.random.fold_in(jax.random.key(config.seed), 3)
    found = []
    laws_in_turn = list(tasks.values())
    if progress is not None:
        laws_in_turn = progress.track(laws_in_turn, description="clipping_search: tasks")
    for tag, law in enumerate(laws_in_turn):
        keys = jax.random.split(jax.random.fold_in(root, tag), runs)
        prompts = draw(keys, law, config.validation + config.test, config.n)
        for run in range(runs):
            model, own = jax.tree.map(lambda leaf: leaf[run], (params, prompts))  # noqa: B023
            validation = jax.tree.map(lambda leaf: leaf[: config.validation], own)
            test = jax.tree.map(lambda leaf: leaf[config.validation :], own)
            found += [way(risk, model, validation, test) for way in ways.values()]
    axes = ("task", "run", "search")
    shape = (len(tasks), runs, len(ways))

    def table(read):
        return axes, np.array([read(one) for one in found]).reshape(shape)

    return xr.Dataset(
        {
            "validation_gain": table(lambda one: one.validation_gain / one.test_risk),
            "test_gain": table(lambda one: one.test_gain / one.test_risk),
            "low": table(lambda one: one.test_interval[0] / one.test_risk),
            "high": table(lambda one: one.test_interval[1] / one.test_risk),
            "risk": table(lambda one: one.test_risk),
            "passes": table(lambda one: one.forward_passes),
            "edits": table(lambda one: len(one.edits)),
            # Of the last edit; layer 0, rate 0: none.
            "layer": table(lambda one: one.edits[-1].layers[0] + 1 if one.edits else 0),
            "rate": table(lambda one: one.edits[-1].rate if one.edits else 0.0),
            "status": ("trained", status),
        },
        {"task": list(tasks), "search": list(ways)},
    )
