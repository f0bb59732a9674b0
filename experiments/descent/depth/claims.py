"""Risk ratios, shapes and the cost of dropping at the worst places of `depth`."""

from collections.abc import Callable

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray | tuple | None]:  # {id: [R]}
    descent, ratios = (risk_ratios(dataset, name) for name in ("gradient descent", "GD++"))
    shapes = shape_distances(dataset)
    clarity = dataset.cost_of_dropping / dataset.cost_of_dropping_se
    least_clear = clarity.argmin(...)
    return {
        "descent": worst(by_place(descent)),
        "descent_settled": worst_settled(dataset, descent),
        "every_demonstration": (
            dataset.cost_of_dropping[least_clear].item(),
            dataset.cost_of_dropping_se[least_clear].item(),
        ),
        "plus_plus": worst(by_place(ratios), disagreement),
        "plus_plus_settled": worst_settled(dataset, ratios, disagreement),
        "shapes": worst(by_place(shapes)),
        "shapes_settled": worst_settled(dataset, shapes),
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
    return stacked(values).dropna("place").transpose("run", "place").values


def worst_settled(dataset, values, badness: Callable = np.median) -> np.ndarray | None:  # [R']
    """The settled runs at the place where ``badness`` of these is largest; None if too few are."""
    rows = stacked(values.where(settled(dataset))).transpose("place", "run").values
    columns = [runs[np.isfinite(runs)] for runs in rows]
    enough = [runs for runs in columns if len(runs) >= results.config_of(dataset).settled_runs]
    return max(enough, key=badness) if enough else None


def stacked(values):
    """All axes but the runs as one."""
    return values.stack(place=[axis for axis in values.dims if axis != "run"])


def disagreement(ratios) -> float:  # [R] -> []
    """The median of |log ratio|: a factor too much is as bad as one too little."""
    return np.median(np.abs(np.log(ratios)))
