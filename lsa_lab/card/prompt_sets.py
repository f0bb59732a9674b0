"""Sets of prompts on which known rules predict differently."""

from dataclasses import replace

import numpy as np

from lsa_lab.card.batches import Batch, PromptDistribution, draw_batch, make_batch
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
    sets["repeated keys"] = draw_repeated_keys(rng, distribution, size, n // 2)[0]
    prompt, order = training.prompt, rng.permutation(n)
    permuted = prompt.replace(x=prompt.x[:, order], y=prompt.y[:, order])
    sets["another order"] = replace(training, prompt=permuted)
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


def draw_repeated_keys(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, pairs: int
) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Draw prompts whose second half repeats the keys of the first, with labels of another w.

    Returns the batch, and the targets of the old and the new w at the query.
    """
    d = distribution.d
    half = draw_batch(rng, replace(distribution, tasks=None), size, pairs)
    old, new = (rng.normal(size=(size, 1, d)) / np.sqrt(d) for _ in range(2))
    x = np.concatenate([half.x[:, :-1], half.x], 1)
    weights = np.concatenate([np.repeat(old, pairs, 1), np.repeat(new, pairs + 1, 1)], 1)
    targets = (x * weights).sum(-1)
    labels = targets + distribution.noise_std * rng.normal(size=targets.shape)
    return make_batch(x, targets, labels), (x[:, -1] * old[:, 0]).sum(-1), targets[:, -1]
