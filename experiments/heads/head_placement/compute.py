"""Risks of every placement and of rules that know the task, on the same prompts."""

import numpy as np
import xarray as xr

from experiments.heads.head_placement.config import Config, specs
from experiments.heads.model_risks import pairs_of, risks_of, risks_of_rules
from experiments.heads.rule_names import RULES


def compute(config: Config, models, *, progress=None, checkpoints=None):
    every = [models[name] for name, _ in config.models]
    pairs = pairs_of(config, every[0].spec.task)
    risks = np.concatenate([risks_of(runs, pairs) for runs in every])
    return xr.Dataset(
        {
            "risk": (("heads", "seed", "shots"), risks),
            "loss": (("heads", "seed", "block"), np.concatenate([runs.loss for runs in every])),
            "taken": (("heads", "seed"), np.concatenate([runs.steps_completed for runs in every])),
            "rule_risk": (("rule", "shots"), risks_of_rules(pairs)),
        },
        {"heads": list(specs(config)), "shots": list(config.shots), "rule": list(RULES)},
    )
