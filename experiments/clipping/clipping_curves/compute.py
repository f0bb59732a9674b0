"""Which layers and modules of a trained transformer bear clipping, and with how many shots?"""

from functools import partial

import jax
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_curves.config import DROPPED, Config
from experiments.clipping.transformer_config import PARTS
from experiments.models import stacks
from lsa_lab.analyses.clipping import DROP, curve

# All of A2's modules at the trained length, and those of its figures at the others.
MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o", **PARTS}


MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack, watched, status = trained_models.transformers(config, "clipping_curves", progress)
    params, risk = trained_models.final(watched), trained_models.squared_error(stack)
    law = stacks.task(stack, n=max(config.shots))
    draw = jax.jit(partial(stacks.draw, law=law, size=config.prompts))
    batch = draw(jax.random.fold_in(jax.random.key(config.seed), 1))
    measure = partial(curve, risk, params, batch, rates=(*config.rates, DROP))
    here = measure(modules=list(MODULES.values()), shots=(config.n,))
    there = measure(modules=list(PARTS.values()), shots=config.shots)
    parts = [list(MODULES).index(part) for part in PARTS]
    shots = np.array([*config.shots, config.n])
    order = np.argsort(shots)
    unclipped = np.concatenate([there.unclipped.mean, here.unclipped.mean], axis=1)[:, order]
    by_shots = np.concatenate([there.change.mean, here.change.mean[:, :, :, parts]], axis=1)
    return xr.Dataset(
        {
            "unclipped": (("run", "shots"), unclipped),
            "change": (("run", "layer", "module", "rate"), here.change.mean[:, 0]),
            "by_shots": (("run", "shots", "layer", "part", "rate"), by_shots[:, order]),
            "status": ("trained", status),
        },
        {
            "shots": shots[order],
            "layer": np.arange(config.depth) + 1,
            "module": list(MODULES),
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
        },
    )
