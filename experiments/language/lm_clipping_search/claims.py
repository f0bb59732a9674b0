"""What searches gain on validation and on fresh sentences, as `lm_clipping_search` judges it."""

import numpy as np

from experiments.language.lm_clipping_search.statements import ALGORITHM, WIDE


def gains(dataset):
    """Clipped less unclipped on fresh sentences: (task, run, search, reading)."""
    return dataset.clipped - dataset.unclipped


def rivals(dataset):
    """The accuracies that rivals to clipping gain, {name: (task, run)}."""
    base = dataset.unclipped.sel(reading="accuracy")
    fitted = dataset.unclipped.sel(reading="fitted")
    return {"calibrated": dataset.calibrated - base, "threshold fitted": fitted - base}


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    test = gains(dataset)
    accuracy, auc = test.sel(reading="accuracy"), test.sel(reading="auc")
    optimism = dataset.validation_gain - accuracy
    few = {"search": list(ALGORITHM)}
    algorithm = accuracy.sel(few).mean("search")
    rival = rivals(dataset)
    values = {
        "algorithm_gains": algorithm,
        "algorithm_wins": np.sign(accuracy.sel(few)).mean("search"),
        "algorithm_auc": auc.sel(few).mean("search"),
        "selection": optimism.sel(few).mean("search"),
        "wider_gains": accuracy.sel(search=WIDE),
        "wider_gains_more": accuracy.sel(search=WIDE) - algorithm,
        "wider_is_more_optimistic": optimism.sel(search=WIDE) - optimism.sel(few).mean("search"),
        "wider_auc": auc.sel(search=WIDE),
        "threshold": rival["threshold fitted"] - accuracy.sel(search=WIDE),
        "calibration": rival["calibrated"] - algorithm,
        "calibration_wider": rival["calibrated"] - accuracy.sel(search=WIDE),
        "beside_a_threshold": test.sel(reading="fitted", search=WIDE),
    }
    return {id: runs.mean("task").values for id, runs in values.items()}
