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
    STEPS,
    Config,
    best_step,
)

AXES = {
    "grid": ("quantity", "relevance", "novelty"),
    "centre": ("factor", "decile"),
    "r2": ("scale", "quantity", "form"),
    "correlation": ("over", "predictor"),
    "of_kind": ("measure", "kind"),
    "share": ("kind",),
    "helps": (),
    "gain": (),
}


def step_sizes(config, x):  # [M, 1, d] -> STEPS of [M]
    square = (x[:, 0] ** 2).sum(1)
    own = 1 / np.where(square > 0, square, 1)  # without covariates no step does anything
    return np.full_like(own, best_step(config)), own, np.ones_like(own)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @jax.jit
    def measure(*each):
        batch_size = min(config.draws, 2000)
        return jax.lax.map(lambda draw: one_shot.effects(*draw), each, batch_size=batch_size)

    rows = []
    for run in range(config.runs):
        prompt, prior = one_shot.draw(config, run)
        steps = step_sizes(config, prompt.x)
        effects = [jax.tree.map(np.asarray, measure(prompt, prior, step)) for step in steps]
        rows.append([cells.summary(of_step, config.classes) for of_step in effects])
    return xr.Dataset(
        {
            name: (("run", "step", *axes), np.array([[of[name] for of in row] for row in rows]))
            for name, axes in AXES.items()
        },
        {
            "step": list(STEPS),
            "quantity": list(QUANTITIES),
            "factor": ["relevance", "novelty"],
            "scale": list(SCALES),
            "form": list(FORMS),
            "over": list(OVER),
            "predictor": list(PREDICTORS),
            "measure": ["flow", "contribution"],
            "kind": list(KINDS),
        },
    )
