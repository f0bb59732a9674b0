"""Why is there a best clipping rate, and can the spectrum tell it unsearched?"""

from functools import partial

import jax
import numpy as np

from experiments.clipping.trained_models import path_of, ridge_risks
from experiments.clipping.transformers import spec_of
from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS, Config
from experiments.clipping.why_a_rate.edited_risks import batches, curves, gains, noise_of
from experiments.clipping.why_a_rate.rate_rules import (
    MATRICES,
    MODULES,
    PREDICTORS,
    SEARCHES,
    best_edits,
    predicted_ranks,
)
from lsa_lab.analyses import clipping

AXES = {
    "change": ("condition", "prompts", "run", "layer", "module", "rate"),
    "risk": ("condition", "prompts", "run"),
    "rival": ("condition", "way", "run", "layer", "module", "rival_rate"),
    "predicted": ("condition", "run", "layer", "matrix", "predictor"),
    "gain": ("condition", "search", "run"),
    "ridge": ("condition", "run"),
}


def spectra(params):  # -> [R, L, M, p]
    pieces = clipping.by_singular_value(params, MATRICES)
    return np.stack([np.asarray(pieces[name].values) for name in MATRICES], axis=2)


def measure(spec, params, prompts, splits, matched, config):
    """The variables of AXES in one condition but for ridge's, and the edits that were searched
    there; ``matched`` are those of the matched condition, None in it."""
    validation, test, judges = prompts
    rates = (*config.rates, clipping.DROP)
    risks, changes = zip(
        *(curves(spec, params, batch, rates) for batch in (validation, test)), strict=True
    )
    rivals = [curves(spec, params, test, config.rival_rates, split)[1] for split in splits]
    searched = {name: best_edits(changes[0], modules) for name, modules in SEARCHES.items()}
    edits = (*searched.values(), matched or searched["of all"])
    return {
        "change": changes,
        "risk": risks,
        "rival": rivals,
        "predicted": predicted_ranks(spectra(params), config.energy),
        "gain": gains(spec, params, judges, edits, rates),
    }, searched["of all"]


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    runs, spec = models["transformer"], spec_of(config)
    path = path_of(runs)
    key_prompts, key_directions = jax.random.split(jax.random.key(config.seed))
    splits = (clipping.by_magnitude, partial(clipping.by_random_direction, key_directions))
    measured, matched = [], None
    for condition, prompts in batches(key_prompts, spec, len(path.w_q), config).items():
        at = config.early if condition == "under-trained" else -1
        params = jax.tree.map(lambda leaf, at=at: leaf[:, at], path)
        values, edits = measure(spec, params, prompts, splits, matched, config)
        values["ridge"] = ridge_risks(prompts[-1], noise_of(condition, config))
        matched = matched or edits  # the first condition
        measured.append(values)
    data = {
        name: (axes, np.array([values[name] for values in measured], float))
        for name, axes in AXES.items()
    }
    kept = [clipping.kept_rank(spec.architecture.width, rate) for rate in config.rates]
    data["kept"] = (("rate",), [*kept, 0])
    data["status"] = (("trained",), [str(status) for status in runs.status])
    coordinates = {
        "condition": list(CONDITIONS),
        "prompts": ["validation", "test"],
        "layer": np.arange(1, spec.architecture.depth + 1),
        "module": list(MODULES),
        "matrix": list(MATRICES),
        "rate": [*config.rates, 1.0],  # 1: dropped
        "way": list(RIVALS),
        "rival_rate": list(config.rival_rates),
        "predictor": list(PREDICTORS),
        "search": [*SEARCHES, "of all, matched"],
    }
    return xr.Dataset(data, coordinates)
