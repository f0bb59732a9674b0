"""Sets of prompts on which known rules predict differently."""

from dataclasses import replace

import numpy as np

from lsa_lab.card.batches import (
    Batch,
    PromptDistribution,
    draw_batch,
    draw_repeated_keys,
    permute,
)
from lsa_lab.card.tasks import half_life_gate

MANY, ORDER, NUM_SETS = 1, 7, 11  # places of two sets in the list, and its length


def draw_prompt_sets(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> dict[str, tuple[Batch, int]]:
    """Draw the sets by name, each with the number of demonstrations that a model reads.

    The sets from ORDER on change the prompts of MANY.
    """
    n = 2 * max(n // 4, distribution.d)
    training = draw_batch(rng, distribution, size, n)
    shifts: dict[str, dict] = {
        "stretched covariates": {"stretch": 2.0},
        "enlarged covariates": {"scale": 1.5},
        "noisier labels": {"noise_std": 2 * distribution.noise_std},
        "drifting weights": {"persistence": half_life_gate(distribution.d), "tasks": None},
    }
    sets = {"few demonstrations": training, "many demonstrations": training}
    for name, change in shifts.items():
        sets[name] = draw_batch(rng, replace(distribution, **change), size, n)
    sets["repeated keys"] = draw_repeated_keys(rng, distribution, size, n // 2)
    sets["another order"] = permute(training, rng.permutation(n))
    prompt = training.prompt
    for name, place in {"first": 0, "middle": n // 2, "last": n - 1}.items():
        raised = prompt.replace(y=prompt.y + (np.arange(n) == place))
        sets[f"change with the {name} label"] = replace(training, prompt=raised)
    few = max(distribution.d // 2, 2)
    return {name: (batch, n if i else few) for i, (name, batch) in enumerate(sets.items())}


def take_differences(predictions: np.ndarray) -> np.ndarray:  # [S, ...]
    """Return the predictions; from ORDER on their differences to those of MANY.

    Unrelated predictions in another order differ by √2 of their size, which is divided out.
    """
    changed = predictions - predictions[MANY]
    order = changed[ORDER : ORDER + 1] / 2**0.5
    return np.concatenate([predictions[:ORDER], order, changed[ORDER + 1 :]])
