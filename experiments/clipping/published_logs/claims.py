"""Changes and gains of score in the logs, as `published_logs` judges them."""

import numpy as np

from lsa_lab import results


def changes(dataset):  # -> (end, log, rate)
    """The scores clipped less those unclipped, on validation."""
    return (dataset.score - dataset.score.sel(rate=0)).sel(rate=slice(0.01, None))


def gains(dataset):  # -> (end, log) twice
    """What the best rate on validation gains there, and on test."""
    best = dataset.score.max("rate") - dataset.score.sel(rate=0)
    return best, dataset.test.sel(edit="after") - dataset.test.sel(edit="before")


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [logs]}
    config = results.config_of(dataset)
    drastic = changes(dataset).sel(rate=slice(config.high, None)).mean("rate")
    shallow, deep = (drastic.sel(end=end).values for end in ("first", "last"))
    guessing = dataset.score.sel(end="first").isel(rate=slice(-2, None)).mean("rate") - 0.5
    validation, test = gains(dataset)
    return {
        "deep_is_flat": deep,
        "shallow_degrades": shallow,
        "deep_is_steadier": deep - shallow,
        "shallow_guesses": guessing.values,
        "search_gains": test.values.ravel(),
        "search_gains_deep": test.sel(end="last").values,
        "optimism": (validation - test).values.ravel(),
    }
