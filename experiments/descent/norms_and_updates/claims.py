"""Ratios of risks and sizes with norms over without, pair by pair."""

import numpy as np

from lsa_lab.statistics import best_elsewhere


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    sizes = np.sqrt((dataset["update"] ** 2).sum("layer"))
    writes = np.exp(np.log(dataset.written).mean("layer"))
    return {
        "helps": over_without(dataset.risk.isel(step=-1)),
        "smaller_updates": over_without(sizes),
        "smaller_writes": over_without(writes),
        "shrinking_helps_noisy": best_of_the_others(shrunk(dataset)),
        "shrinking_beats_answers": best_of_the_others(shrunk(dataset))
        / best_of_the_others(shrunk(dataset, what="answers")),
        "trains_faster": over_without(dataset.risk.isel(step=1)),
    }


def over_without(values) -> np.ndarray:  # (norm, run) -> [R]
    return (values.sel(norm="with") / values.sel(norm="without")).values


def shrunk(dataset, norm: str = "without", what: str = "shrunk") -> np.ndarray:  # [R, S]
    """Risks on noisier labels with all writes shrunk, or "answers" alone, over those with none."""
    risks = dataset[what].sel(norm=norm)
    ratios = risks.isel(shrinkage=slice(1, None)) / risks.isel(shrinkage=0)
    return ratios.transpose("run", "shrinkage").values


def best_of_the_others(ratios) -> np.ndarray:  # [R, S] -> [R]
    """Each run's ratio at the place with the least mean logarithm over the other runs."""
    return np.exp(-best_elsewhere(-np.log(ratios)))


def over_ridge(dataset):  # (norm, run, step)
    """Excess risks over that of ridge regression with the best penalty, on the same prompts."""
    return dataset.risk / dataset.ridge
