"""What clipping one part of one layer does to the risk of trained models."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import DROPPED, PARTS, spec_of
from experiments.clipping.clipping_curves.config import Config
from experiments.models.tasks import distribution
from lsa_lab.analyses.clipping import DROP


def compute(config: Config, models, *, progress=None, checkpoints=None):
    runs, spec = models["transformer"], spec_of(config)
    params = trained_models.final(trained_models.path_of(runs))
    shots = sorted({*config.shots, *spec.task.lengths})
    task = distribution(spec.task, max(shots), dtype=jnp.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    batch = trained_models.own_prompts(key, task, len(params.w_q), config.prompts)
    grid = dict(modules=list(PARTS.values()), rates=(*config.rates, DROP), shots=shots)
    curve = trained_models.own_curve(spec, params, batch, **grid)
    cuts = [batch.replace(x=batch.x[:, :, :n], y=batch.y[:, :, :n]) for n in shots]
    ridge = [trained_models.ridge_risks(cut, spec.task.noise_std) for cut in cuts]
    return xr.Dataset(
        {
            "unclipped": (("run", "shots"), curve.unclipped.mean),
            "ridge": (("run", "shots"), np.stack(ridge, axis=1)),
            "change": (("run", "shots", "layer", "part", "rate"), curve.change.mean),
            "status": ("trained", [str(status) for status in runs.status]),
        },
        {
            "shots": shots,
            "layer": np.arange(spec.architecture.depth) + 1,
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
        },
    )
