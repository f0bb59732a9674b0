"""What sorting the demonstrations changes of the error: by fixed rules, and by the best one."""

import numpy as np

from experiments.matching.demonstration_order.config import useful
from lsa_lab import results


def chosen(half):  # [R, 2, 6] -> [R]
    """The change that a rule brings on one half of the prompts, chosen on the other: both ways."""
    runs = np.arange(len(half))
    ways = [half[runs, 1 - i, half[:, i].argmin(-1)] for i in (0, 1)]
    return np.mean(ways, axis=0)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    by_id = {}
    for model in useful(results.config_of(dataset)):
        name, change = model.replace(" ", "_"), dataset.change.sel(model=model)
        half = dataset.half.sel(model=model).transpose("run", "half", "rule")
        by_id[f"{name}_best"] = chosen(half.values)
        by_id[f"{name}_easy_to_hard"] = change.sel(rule="easy to hard").values
        by_id[f"{name}_large_steps_first"] = change.sel(rule="large to small step").values
    return by_id
