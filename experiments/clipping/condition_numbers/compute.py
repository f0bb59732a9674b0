"""Are deep layers worse conditioned, and do they tolerate more clipping?"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.condition_numbers.config import MODULES, Config
from experiments.clipping.condition_numbers.disturbed import disturb_all
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.store import parts


def compute(config: Config, models, *, progress=None, checkpoints=None):
    """The heads of a projection are one matrix, as they are in A2."""
    import xarray as xr

    finished, spec = models["transformer"], spec_of(config)
    path = trained_models.path_of(finished)
    params, modules = trained_models.final(path), list(MODULES.values())
    matrices = clipping.matrices(path, modules)  # each [R', P, L, p, q]
    conditions, ranks = (
        np.stack([measure(matrices[name]) for name in modules], axis=-1)
        for measure in (clipping.condition_number, clipping.stable_rank)
    )
    task = distribution(spec.task, dtype=jnp.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), 2)
    batch = trained_models.own_prompts(key, task, len(params.w_q), config.prompts)
    # Ranks of risks are judged, which need no bound: answers are not cut.
    grid = dict(modules=modules, rates=(config.rate,), cut=False)
    clipped_alone = trained_models.own_curve(spec, params, batch, **grid)
    unclipped = clipped_alone.unclipped.mean[:, 0]
    ratio = 1 + clipped_alone.change.mean[:, 0, :, :, 0] / unclipped[:, None, None]
    axes = ("run", "steps", "layer", "module")
    conditioned = xr.Dataset(
        {
            "condition": (axes, conditions),
            "stable_rank": (axes, ranks),
            "ratio": (("run", "layer", "module"), ratio),
            "unclipped": (("run",), unclipped),
            "ridge": (("run",), trained_models.ridge_risks(batch, spec.task.noise_std)),
            "status": ("trained", [str(status) for status in finished.status]),
        },
        {
            "steps": finished.path_steps,
            "layer": np.arange(spec.architecture.depth) + 1,
            "module": list(MODULES),
        },
    )
    return parts.join(conditioned, disturbed=disturb_all(config.disturbed, finished, spec))
