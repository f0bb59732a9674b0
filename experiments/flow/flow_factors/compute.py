"""Is what a demonstration gives the product of its relevance and its novelty, or their sum?"""

import jax
import numpy as np

from experiments.flow.flow_factors.config import (
    FORMS,
    QUANTITIES,
    SCALES,
    STEPS,
    Config,
)
from experiments.flow.flow_factors.one_shot import (
    KINDS,
    PREDICTORS,
    best_step,
    draw,
    measured,
    summary,
)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @jax.jit
    def measure(*each):
        one = lambda these: measured(*these)  # noqa: E731
        return jax.lax.map(one, each, batch_size=min(config.draws, 2000))

    of_runs = []
    for run in range(config.runs):
        prompt, prior = draw(config, run)
        square = (prompt.x[:, 0] ** 2).sum(1)
        own = 1 / np.where(square > 0, square, 1)  # without covariates no step does anything
        steps = (np.full_like(own, best_step(config)), own, np.ones_like(own))
        found = [jax.tree.map(np.asarray, measure(prompt, prior, step)) for step in steps]
        of_runs.append([summary(one, config.classes) for one in found])
    names = {
        "grid": ("quantity", "relevance", "novelty"),
        "centre": ("factor", "decile"),
        "r2": ("scale", "quantity", "form"),
        "correlation": ("predictor",),
        "of_kind": ("measure", "kind"),
        "share": ("kind",),
    }
    scalars = dict.fromkeys(("helps", "gain", "not_product", "not_equation_2"), ())
    return xr.Dataset(
        {
            name: (
                ("run", "step", *axes),
                np.array([[one[name] for one in row] for row in of_runs]),
            )
            for name, axes in (names | scalars).items()
        },
        {
            "step": list(STEPS),
            "quantity": list(QUANTITIES),
            "factor": ["relevance", "novelty"],
            "scale": list(SCALES),
            "form": list(FORMS),
            "predictor": list(PREDICTORS),
            "measure": ["flow", "contribution"],
            "kind": list(KINDS),
        },
    )
