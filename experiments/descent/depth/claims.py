"""Risk ratios, shapes and the cost of dropping at the worst places of `depth`."""

from collections.abc import Callable

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray | tuple | None]:  # {id: [R]}
    descent, ratios = (
        by_place(risk_ratios(dataset, name)) for name in ("gradient descent", "GD++")
    )
    shapes = shape_distances(dataset)
    at_rest = settled(dataset)
    clarity = dataset.cost_of_dropping / dataset.cost_of_dropping_se
    least_clear = clarity.argmin(...)
    return {
        "descent": worst(descent),
        "every_demonstration": (
            dataset.cost_of_dropping[least_clear].item(),
            dataset.cost_of_dropping_se[least_clear].item(),
        ),
        "plus_plus": worst(ratios, disagreement),
        "plus_plus_settled": worst_settled(dataset, ratios, by_place(at_rest), disagreement),
        "shapes": worst(by_place(shapes)),
        "shapes_settled": worst_settled(
            dataset, by_place(shapes), by_place(at_rest.where(shapes.notnull())).astype(bool)
        ),
    }


def risk_ratios(dataset, algorithm):
    """Trained over tuned."""
    return dataset.trained_risk / dataset.algorithm_risk.sel(algorithm=algorithm)


def shape_distances(dataset):
    """Each stack's distance of its worst layer. B of the last layer moves nothing that is read: of
    one layer it is NaN."""
    distance = dataset.distance
    read = (distance.matrix == "A") | (distance.layer < distance.depth)
    return distance.where(read).max("layer")


def settled(dataset):
    """Which stacks did not diverge, and have nothing to gain from a Gauss-Newton step."""
    level = np.abs(dataset.left_to_gain) < results.config_of(dataset).settled
    return level & ~dataset.status.astype(str).str.startswith("diverged")


def by_place(values) -> np.ndarray:  # [R, places]
    """Runs first; places where a number is NaN are left out."""
    rows = values.stack(place=[axis for axis in values.dims if axis != "run"])
    return rows.dropna("place").transpose("run", "place").values


def worst_settled(
    dataset, samples: np.ndarray, at_rest: np.ndarray, badness: Callable = np.median
) -> np.ndarray | None:  # [R, places] twice -> [R']
    """The settled runs at the place where ``badness`` of these is largest; None if too few are."""
    least = results.config_of(dataset).settled_runs
    columns = [runs[kept] for runs, kept in zip(samples.T, at_rest.T, strict=True)]
    enough = [runs for runs in columns if len(runs) >= least]
    return max(enough, key=badness) if enough else None


def disagreement(ratios) -> float:  # [R] -> []
    """The median of |log ratio|: a factor too much is as bad as one too little."""
    return np.median(np.abs(np.log(ratios)))
