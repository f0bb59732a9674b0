"""Divergences of the classes' shares and errors, of matched and of random subsets."""

import numpy as np

from experiments.matching.several_classes.config import TAGS
from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    by_id = {}
    for classes in results.config_of(dataset).classes:
        of_classes = dataset.sel(classes=classes)
        random = of_classes.sel(rule="random")
        by_id[f"random_{classes}"] = random.divergence.values
        for rule, tag in TAGS.items():
            matched = of_classes.sel(rule=rule)
            by_id[f"{tag}_{classes}"] = matched.divergence.values
            relative = matched.divergence / random.divergence.mean("run")
            by_id[f"{tag}_{classes}_shares"] = relative.values
            by_id[f"{tag}_{classes}_error"] = (matched.wrong - random.wrong).values
    return by_id
