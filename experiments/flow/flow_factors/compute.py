"""One demonstration in many prompts, its effects measured and summed up run by run."""

import jax
import numpy as np

from experiments.flow.flow_factors import cells, one_shot
from experiments.flow.flow_factors.config import (
    FORMS,
    KINDS,
    OVER,
    PREDICTORS,
    QUANTITIES,
    SCALES,
    Config,
    best_step,
)

AXES = {
    "grid": ("quantity", "relevance", "novelty"),
    "centre": ("factor", "decile"),
    "r2": ("scale", "quantity", "form"),
    "correlation": ("over", "predictor"),
    "of_kind": ("measure", "kind"),
    "helps": (),
    "lowers": ("rule",),
    "taken": (),
    "ceiling": (),
}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @jax.jit
    def measure(*each):
        batch_size = min(config.draws, 2000)
        return jax.lax.map(lambda draw: one_shot.effects(*draw), each, batch_size=batch_size)

    steps, rows = np.full(config.draws, best_step(config)), []
    for run in range(config.runs):
        effects = jax.tree.map(np.asarray, measure(*one_shot.draw(config, run), steps))
        rows.append(cells.summary(effects, config.classes))
        fresh = one_shot.draw(config, config.runs + run)  # no other row has seen these
        effects = jax.tree.map(np.asarray, measure(*fresh, steps))
        rows[-1] |= cells.beside_bayes(effects, one_shot.bayes_contribution(*fresh))
    return xr.Dataset(
        {
            name: (("run", *axes), np.array([of_run[name] for of_run in rows]))
            for name, axes in AXES.items()
        },
        {
            "quantity": list(QUANTITIES),
            "factor": ["relevance", "novelty"],
            "scale": list(SCALES),
            "form": list(FORMS),
            "over": list(OVER),
            "predictor": list(PREDICTORS),
            "measure": ["flow", "contribution"],
            "kind": list(KINDS),
            "rule": ["attention", "Bayes rule"],
        },
    )
