"""When does descent on preprocessed covariates beat descent, and do trained models do it?"""

import jax
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.preprocess_then_optimise import (
    descent_risks,
    learned_features,
    preprocessing,
)
from experiments.heads.preprocess_then_optimise.config import (
    FEATURES,
    FITTED,
    MODELS,
    RULES,
    TUNED,
    Config,
)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    keys = [jax.random.fold_in(jax.random.key(config.seed), tag) for tag in range(3)]
    law, wide = descent_risks.laws(config)
    return xr.Dataset(
        {
            **descent_risks.of_first_task(config, law, keys[0]),
            **descent_risks.of_wide_task(config, wide, keys[1]),
            **learned_features.compute(config, keys[2], progress),
        },
        {
            "heads": list(config.heads),
            "heads_missing": [0, 1],
            "rule": list(RULES),
            "t": preprocessing.steps(config.steps),
            "used": ["raw", *map(str, config.heads)],
            "tuned": list(TUNED),
            "depth": np.arange(1, config.depth + 1),
            "reference": list(sparse_rules.RULES),
            "features": list(FEATURES),
            "step": np.arange(config.trained_steps + 1),
            "model": list(MODELS),
            "fitted_rule": list(FITTED),
        },
    )
