"""Residuals of the searches for a first layer, and what it costs to have too few heads."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict:
    config = results.config_of(dataset)
    residual, image, ratio = dataset.residual, dataset.of_image, over_all_heads(dataset)
    best, missing = residual.min("restart"), residual.d - residual.heads
    below = dataset.image_heads < dataset["rank"]
    built = dataset.built.where(dataset.image_heads == dataset["rank"])
    fewer = ratio.sel(used=[count for count in config.heads if count < config.d])
    return {
        "fewer": float(residual.where(missing > 0).min()),
        "enough": float(best.where(missing == 0).max()),
        "count": float(abs(best - missing).where(missing > 0).max()),
        "image": float(built.max()),
        "image_fewer": float(image.where(below).min()),
        "cost": worst(fewer.transpose("run", ...), lambda runs: -np.median(runs)),
    }


def over_all_heads(dataset):  # [run, used]
    """The risk with H heads over that with d."""
    return dataset.risk / dataset.risk.sel(used=results.config_of(dataset).d)


def share_at_the_least(dataset) -> float:
    """The smallest share, over d and H <= d, of restarts that end at the least residual."""
    config = results.config_of(dataset)
    ends = dataset.residual.values.reshape(-1, config.restarts)
    ends = ends[np.isfinite(ends[:, 0])]
    return float(np.mean(ends <= ends.min(1, keepdims=True) + config.off, axis=1).min())
