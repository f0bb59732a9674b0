"""What the statements of `depth` are judged by."""

import numpy as np

from experiments.descent.depth.tuned import COVARIANCES
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_median, verdict_of


def predicted_shapes(there, matrix):  # -> [R, depths]
    """Each run's distance of its worst layer. B of the last layer moves nothing that is read."""
    distance = there.distance.sel(matrix=matrix)
    if matrix == "B":
        distance = distance.where(there.layer < there.depth)
    return distance.max("layer").transpose("run", "depth").values


# One stack in eight explodes on a rare prompt, and the mean with it.
_CHANGED = "(statistic changed after a first run: it was the mean)"


def claims(dataset):
    settings = results.config_of(dataset)
    place = ("covariance", "depth")
    ratios = (dataset.trained_risk / dataset.algorithm_risk).stack(place=place)
    descent, plus_plus = (
        max(ratios.sel(algorithm=name).transpose("place", "run").values, key=badness)
        for name, badness in (("gradient descent", np.median), ("GD++", _disagreement))
    )
    there = (dataset.sel(covariance=name) for name in COVARIANCES)
    shapes = np.concatenate([predicted_shapes(one, matrix).T for one in there for matrix in "AB"])
    shapes = shapes[np.isfinite(shapes).all(1)]  # one layer has no B to speak of
    clarity = dataset.cost_of_dropping / dataset.cost_of_dropping_se
    least = clarity.argmin(...)
    cost = float(dataset.cost_of_dropping[least])
    half = 1.96 * float(dataset.cost_of_dropping_se[least])
    factor = settings.ratio_to_plus_plus
    return [
        about_the_median(
            "depth.descent",
            "von Oswald et al. 2212.07677",
            "L trained layers predict at least as well as L tuned steps of gradient descent",
            f"median risk ratio at the worst depth and covariance <= {settings.ratio_to_descent} "
            + _CHANGED,
            descent,
            at_most=settings.ratio_to_descent,
        ),
        about_the_median(
            "depth.plus_plus",
            "von Oswald et al. 2212.07677; Ahn et al. 2306.00297",
            "Trained layers reach the risk of tuned GD++, and no less",
            f"median risk ratio at the worst depth and covariance within a factor {factor} "
            + _CHANGED,
            plus_plus,
            at_least=1 / factor,
            at_most=factor,
        ),
        about_the_median(
            "depth.shapes",
            "Ahn et al. 2306.00297",
            "The learned matrices are A_l ∝ Σ^{-1} and B_l ∝ I",
            f"median distance at the worst layer, depth and covariance <= {settings.distance} "
            + _CHANGED,
            max(shapes, key=np.median),
            at_most=settings.distance,
        ),
        Claim(
            "depth.every_demonstration",
            "derived here",
            "A descent baseline that drops the last demonstration is worse than one that does not",
            "mean difference of squared errors on the same prompts >= 0, where it is least clear",
            cost,
            (cost - half, cost + half),
            verdict_of((cost - half, cost + half), at_least=0.0),
        ),
    ]


def _disagreement(ratios):
    return np.median(np.abs(np.log(ratios)))
