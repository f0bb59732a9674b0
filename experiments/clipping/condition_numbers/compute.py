"""Are deep layers worse conditioned, and do they tolerate more clipping?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.condition_numbers.config import MODULES, Config
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses import clipping


def compute(config: Config, *, progress=None, checkpoints=None):
    """The heads of a projection are one matrix, as they are in A2."""
    import xarray as xr

    spec, path, statuses = trained_models.transformers(config, "condition_numbers", progress)
    modules = list(MODULES.values())
    matrices = clipping.matrices(path, modules)  # each [R', looks+1, L, p, q]
    conditions, ranks = (
        np.stack([measure(matrices[name]) for name in modules], axis=-1)
        for measure in (clipping.condition_number, clipping.stable_rank)
    )
    task = distribution(spec.task, dtype=jnp.float32)
    sample = jax.jit(partial(draw, task=task, size=config.prompts))
    clipped_alone = clipping.curve(
        trained_models.squared_error(spec),
        trained_models.final(path),
        sample(jax.random.fold_in(jax.random.key(config.seed), 2)),
        modules=modules,
        rates=(config.rate,),
    )
    unclipped = clipped_alone.unclipped.mean[:, 0, None, None]
    ratio = 1 + clipped_alone.change.mean[:, 0, :, :, 0] / unclipped
    axes = ("run", "steps", "layer", "module")
    return xr.Dataset(
        {
            "condition": (axes, conditions),
            "stable_rank": (axes, ranks),
            "ratio": (("run", "layer", "module"), ratio),
            "status": ("trained", statuses),
        },
        {
            "steps": np.arange(config.looks + 1) * (config.steps // config.looks),
            "layer": np.arange(config.depth) + 1,
            "module": list(MODULES),
        },
    )
