"""Ask causal stacks with sorted and with shuffled demonstrations."""

import jax
import numpy as np

from experiments.matching.demonstration_order import causal_stacks
from experiments.matching.demonstration_order.config import RULES, Config, stack_names
from experiments.matching.demonstration_order.orders import (
    bayes_errors,
    predictions,
    sample_orders,
)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    stacks, status = causal_stacks.stacks(config, models)
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    batch, orders = sample_orders(config, key)
    answers = np.asarray(batch.y_query)[:, :, None]
    measured, level = [], []
    for name in stack_names(config):
        forward, params = stacks[name]
        predicted = np.asarray(predictions(forward, params, batch, orders))
        error = (predicted - answers) ** 2
        measured.append(changes(config, error))
        level.append(np.median(error[:, :, len(RULES) :], axis=(1, 2)))
    half, whole, luck = (np.stack(part) for part in zip(*measured, strict=True))
    return xr.Dataset(
        {
            "half": (("model", "run", "half", "rule"), half),
            "change": (("model", "run", "rule"), whole),
            "luck": (("model", "run"), luck),
            "level": (("model", "run"), np.stack(level)),
            "bayes": ("run", np.median(bayes_errors(config, batch), axis=1)),
            "status": (("trained", "run"), np.array(list(status.values()))),
        },
        {"model": stack_names(config), "rule": list(RULES), "trained": list(status)},
    )


def changes(config, error):  # [R, B, 6 + O] -> [R, 2, 6], [R, 6], [R]
    """The change of the error against random orders, as a share of theirs: by rule on each half of
    the prompts, by rule on all, and in the luckiest random order of each prompt, on all.

    Left out are the prompts with the largest error in any order, the same for all rules.
    """
    halves = np.array_split(np.arange(config.test_prompts), 2)

    def share(rows):  # [R, B', 6 + O] -> [R, 6], [R]
        kept = rows.shape[1] - int(config.left_out * rows.shape[1])
        mild = np.argsort(rows.max(-1), axis=1)[:, :kept, None]
        rows = np.take_along_axis(rows, mild, axis=1)
        random = rows[:, :, len(RULES) :]
        level = random.mean((1, 2))
        ruled = rows[:, :, : len(RULES)].mean(1) / level[:, None] - 1
        return ruled, random.min(2).mean(1) / level - 1

    by_half = np.stack([share(error[:, half])[0] for half in halves], axis=1)
    return by_half, *share(error)
