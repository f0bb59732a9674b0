"""Trained models under masks of their heads, each run on prompts of its own, and which to keep."""

import jax
import numpy as np

from experiments.heads import importance
from experiments.heads.each_run import map_runs
from experiments.models.model import Model
from lsa_lab.analyses import heads
from lsa_lab.prompts import Prompt


def risks(models: Model, batch: Prompt, masks: np.ndarray) -> np.ndarray:  # [R, M]
    """Excess risks of each run under its masks [R, M, L, H], on its prompts [R, B]."""
    return map_runs(importance.risks, _one_by_one(models), batch, masks)[:, 0]


def importances(models: Model, batch: Prompt) -> np.ndarray:  # [R, L, H]
    """What every head saves, by zeroing it alone, in each run on its prompts [R, B]."""
    return map_runs(importance.importances, _one_by_one(models), batch)[:, 0]


def _one_by_one(models: Model) -> Model:  # leaves [R, 1, ...]
    return jax.tree.map(lambda leaf: leaf[:, None], models)


def treatment_masks(models: Model, scores: np.ndarray, key, draws: int) -> np.ndarray:
    """Masks [R, len(CHOSEN) + 2 draws, L, H]: CHOSEN, then the draws of each of RANDOM."""
    counts = models.spec.architecture.variants[-1]
    keys = jax.random.split(key, (len(scores), 2, draws))

    def masks_of_run(r):
        chosen = [models.gates[0], heads.prune(scores[r], counts)]
        chosen.append(heads.prune_first_layer(scores[r], counts))
        controls = (heads.prune_to_random_heads, heads.remove_at_random)
        return chosen + [
            control(key, scores[r], counts)
            for control, own in zip(controls, keys[r], strict=True)
            for key in own
        ]

    return np.array([masks_of_run(r) for r in range(len(scores))], float)
