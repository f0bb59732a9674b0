"""Does selecting demonstrations by their flow (GradS) beat other selection?"""

import jax
import numpy as np

from experiments.flow.grads.config import Config
from experiments.flow.grads.selecting import PROMPTS, RULES, join, oracle, seen, study
from experiments.flow.grads.selection_cases import SETTINGS, draw
from lsa_lab.tasks import tables


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    table, runs, found, best_of = tables.load_diabetes(float), config.runs, [], []
    for i, setting in enumerate(SETTINGS):
        cases = draw(config, setting, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        found.append({m: seen(study, config, cases, keys, m) for m in config.pools})
        few = jax.tree.map(lambda leaf: leaf[:runs, : config.few], (cases, keys))
        best_of.append(seen(oracle, config, *few, config.pool))
        if setting == "duplicates":
            joined = seen(join, config, *few, config.pool)["joined"]

    def all_shots(values):  # more shots than the pool has are NaN
        missing = len(config.shots) - values.shape[-1]
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=np.nan)

    error = np.array([[all_shots(of[m]["error"]) for m in config.pools] for of in found])
    layer = np.array([of[config.pool]["layer"] for of in found])
    end = np.array([[of[m]["end"] for m in config.pools] for of in found])
    best = np.array([of[config.small]["best"] for of in found])
    of_rule, of_layer = ("rule", "shots"), ("prompt", "layer", "shots")
    return xr.Dataset(
        {
            "error": (("setting", "pool", "run", *of_rule), error[:, :, :runs]),
            "validation": (("setting", "pool", "other", *of_rule), error[:, :, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "pool", "run", "prompting"), end[:, :, :runs]),
            "best": (("setting", "run"), best[:, :runs]),
            "oracle": (("setting", "run", "shots"), np.array([of["oracle"] for of in best_of])),
            "zero_shot": (("setting", "run"), np.array([of["zero_shot"] for of in best_of])),
            "joined": (("run", "flow"), joined),
        },
        {
            "setting": list(SETTINGS),
            "pool": list(config.pools),
            "rule": list(RULES),
            "shots": list(config.shots),
            "prompt": list(PROMPTS),
            "layer": np.arange(1, config.depth + 1),
            "prompting": ["zero-shot", "whole pool"],
            "flow": ["static", "recomputed"],
        },
    )
