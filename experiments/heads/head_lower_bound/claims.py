"""What it costs to have too few heads."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict:
    ratio = over_all_heads(dataset)
    return {
        "cost": where_least(ratio.sel(features="alone")),
        "cost_beside_raw": where_least(ratio.sel(features="beside raw")),
    }


def over_all_heads(dataset):  # [features, run, used < d]
    """The risk with H < d heads over that with d."""
    config = results.config_of(dataset)
    fewer = [count for count in config.heads if count < config.d]
    return dataset.risk.sel(used=fewer) / dataset.risk.sel(used=config.d)


def where_least(ratio) -> np.ndarray:  # [run, used] -> [run]
    """The ratios at the number of heads whose median over runs is least."""
    return worst(ratio.transpose("run", ...), lambda runs: -np.median(runs))
