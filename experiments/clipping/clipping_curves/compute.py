"""Which layers and modules of a trained model tolerate clipping, and at which shots?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_curves.config import DROPPED, MODULES, Config
from experiments.clipping.transformer_config import PARTS
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses.clipping import DROP, curve


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    spec, path, statuses = trained_models.transformers(config, "clipping_curves", progress)
    params, risk = trained_models.final(path), trained_models.squared_error(spec)
    task = distribution(spec.task, max(config.shots), dtype=jnp.float32)
    sample = jax.jit(partial(draw, task=task, size=config.prompts))
    batch = sample(jax.random.fold_in(jax.random.key(config.seed), 1))
    measure = partial(curve, risk, params, batch, rates=(*config.rates, DROP))
    as_trained = measure(modules=list(MODULES.values()), shots=(config.n,))
    others = measure(modules=list(PARTS.values()), shots=config.shots)
    parts = [list(MODULES).index(part) for part in PARTS]
    shots = np.array([*config.shots, config.n])
    order = np.argsort(shots)
    unclipped = np.concatenate([others.unclipped.mean, as_trained.unclipped.mean], axis=1)
    changes = as_trained.change.mean  # [R, 1, L, M, Q]
    by_shots = np.concatenate([others.change.mean, changes[:, :, :, parts]], axis=1)
    return xr.Dataset(
        {
            "unclipped": (("run", "shots"), unclipped[:, order]),
            "change": (("run", "layer", "module", "rate"), changes[:, 0]),
            "by_shots": (("run", "shots", "layer", "part", "rate"), by_shots[:, order]),
            "status": ("trained", statuses),
        },
        {
            "shots": shots[order],
            "layer": np.arange(config.depth) + 1,
            "module": list(MODULES),
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
        },
    )
