"""Risk ratios, shapes and the cost of dropping at the worst places of `depth`."""

import numpy as np

from experiments.descent.depth.config import COVARIANCES
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray | tuple]:  # {id: [R]}
    ratios = dataset.trained_risk.transpose("run", ...) / dataset.algorithm_risk
    shapes = [predicted_shapes(dataset, c, matrix) for c in COVARIANCES for matrix in "AB"]
    shapes = np.concatenate(shapes, axis=1)
    clarity = dataset.cost_of_dropping / dataset.cost_of_dropping_se
    least_clear = clarity.argmin(...)
    return {
        "descent": worst(ratios.sel(algorithm="gradient descent")),
        "plus_plus": worst(ratios.sel(algorithm="GD++"), disagreement),
        "shapes": worst(shapes[:, np.isfinite(shapes).all(0)]),  # one layer has no B to speak of
        "every_demonstration": (
            dataset.cost_of_dropping[least_clear].item(),
            dataset.cost_of_dropping_se[least_clear].item(),
        ),
    }


def predicted_shapes(dataset, covariance, matrix) -> np.ndarray:  # [R, depths]
    """Each run's distance of its worst layer. B of the last layer moves nothing that is read."""
    distance = dataset.distance.sel(matrix=matrix, covariance=covariance)
    if matrix == "B":
        distance = distance.where(dataset.layer < dataset.depth)
    return distance.max("layer").transpose("run", "depth").values


def disagreement(ratios) -> float:  # [R] -> []
    """The median of |log ratio|: a factor too much is as bad as one too little."""
    return np.median(np.abs(np.log(ratios)))
