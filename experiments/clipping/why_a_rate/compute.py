"""Why is there a best clipping rate, and can the spectrum tell it unsearched?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.why_a_rate.config import (
    CONDITIONS,
    PREDICTORS,
    RIVALS,
    Config,
)
from experiments.clipping.why_a_rate.edited_risks import batches, curves, gains
from experiments.clipping.why_a_rate.rate_rules import (
    MATRICES,
    MODULES,
    SEARCHES,
    best_edits,
    predicted_ranks,
)
from experiments.models import stacks
from lsa_lab.analyses import clipping


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack, key = stacks.clipped_stack(config), jax.random.key(config.seed)
    many = (config.runs, config.training_seed, "models to clip", progress)
    run = stacks.trained(stack, *many, looks=config.looks)
    key_prompts, key_directions = jax.random.split(key)
    rates = (*config.rates, clipping.DROP)
    splits = (clipping.by_magnitude, partial(clipping.by_random_direction, key_directions))
    found = {"change": [], "risk": [], "rival": [], "predicted": [], "gain": []}
    for condition, (validation, test, judges) in batches(key_prompts, stack, config).items():
        look = config.early if condition == "under-trained" else -1
        params = jax.tree.map(lambda leaf, at=look: jnp.asarray(leaf[:, at]), run.history["watch"])

        both = [curves(stack, params, batch, rates) for batch in (validation, test)]
        found["risk"].append([risk for risk, _ in both])
        found["change"].append([change for _, change in both])
        rivals = [curves(stack, params, test, config.rival_rates, split) for split in splits]
        found["rival"].append([change for _, change in rivals])
        change = both[0][1]
        searched = {name: best_edits(change, modules) for name, modules in SEARCHES.items()}
        if condition == "matched":
            matched = searched["of all"]
        edits = (*searched.values(), matched)
        found["gain"].append([gains(stack, params, judges, one, rates) for one in edits])
        pieces = clipping.by_singular_value(params, MATRICES)
        spectra = np.stack([np.asarray(pieces[name].values) for name in MATRICES], axis=2)
        found["predicted"].append(predicted_ranks(spectra, config.energy))
    axes = {
        "change": ("condition", "prompts", "run", "layer", "module", "rate"),
        "risk": ("condition", "prompts", "run"),
        "rival": ("condition", "way", "run", "layer", "module", "rival_rate"),
        "predicted": ("condition", "run", "layer", "matrix", "predictor"),
        "gain": ("condition", "search", "run"),
    }
    data = {name: (dims, np.array(found[name], float)) for name, dims in axes.items()}
    kept = [clipping.kept_rank(config.width, rate) for rate in config.rates]
    data["kept"] = (("rate",), [*kept, 0])
    data["status"] = (("run",), [str(one) for one in run.status])
    coordinates = {
        "condition": list(CONDITIONS),
        "prompts": ["validation", "test"],
        "layer": np.arange(1, config.depth + 1),
        "module": list(MODULES),
        "matrix": list(MATRICES),
        "rate": [*config.rates, 1.0],  # 1: dropped
        "way": list(RIVALS),
        "rival_rate": list(config.rival_rates),
        "predictor": list(PREDICTORS),
        "search": [*SEARCHES, "of all, matched"],
    }
    return xr.Dataset(data, coordinates)
