"""Changes of accuracy by clipping, layer by layer, as `label_clipping` judges them."""

import numpy as np

from experiments.clipping.label_clipping.config import DROPPED
from experiments.clipping.label_clipping.statements import PARTS, shots
from experiments.clipping.layer_ends import shallow_and_deep
from lsa_lab import results


def changes(dataset):  # -> (run, shots, layer, part, rate)
    return dataset.accuracy - dataset.unclipped_accuracy


def chosen_by_others(values):  # (run, layer, part, rate) -> [R]
    """The value of each run under the edit that is best, on average, for all the other runs."""
    table = values.transpose("run", ...).values.reshape(values.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmax(1)]


def drastic(values, config):
    """Averaged over the rates from ``high`` on; dropping is not among them."""
    return values.sel(rate=slice(config.high, DROPPED - 1e-9)).mean("rate")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    few, n = shots(config)
    change = changes(dataset)
    shallow, deep = shallow_and_deep(drastic(change, config), config.ends)
    lost = -shallow / (dataset.unclipped_accuracy - 0.5).clip(min=1 / config.prompts)
    sharply, _ = shallow_and_deep(dataset.accuracy.sel(rate=max(config.rates)), config.ends)
    rows = {
        "deep_is_flat": deep.sel(shots=n),
        "shallow_collapses": sharply.sel(shots=n) - 0.5,
        "deep_tolerates_more": (deep - shallow).sel(shots=n),
        "few_shots_fall_less": shallow.sel(shots=n) - shallow.sel(shots=few),
        "few_shots_lose_less": lost.sel(shots=few) - lost.sel(shots=n),
    }
    names = zip(PARTS, dataset.part.values, strict=True)
    values = {
        f"{part}_{id}": row.sel(part=name).values
        for part, name in names
        for id, row in rows.items()
    }
    at_few, at_n = dataset.sel(shots=few), dataset.sel(shots=n)
    best = chosen_by_others(change.sel(shots=n))
    return values | {
        "helps_few": chosen_by_others(change.sel(shots=few)),
        "helps_trained": best,
        "threshold": (at_n.unclipped_fitted - at_n.unclipped_accuracy).values - best,
        "near_bayes_few": (at_few.bayes - at_few.unclipped_accuracy).values,
        "near_bayes_trained": (at_n.bayes - at_n.unclipped_accuracy).values,
        "more_shots_are_better": (at_n.unclipped_accuracy - at_few.unclipped_accuracy).values,
        "more_shots_narrow": (at_n.unclipped_entropy - at_few.unclipped_entropy).values,
        "untrained_guesses": dataset.untrained.values - 0.5,
    }
