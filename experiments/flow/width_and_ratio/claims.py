"""The differences and slopes that the statements of `width_and_ratio` are judged by."""

import numpy as np

from experiments.flow.width_and_ratio.config import TRAINED
from experiments.flow.width_and_ratio.statements import KINDS, RELATIVE
from lsa_lab import results


def widths(dataset, kind) -> np.ndarray:  # [W]
    return dataset["trained_width" if kind == TRAINED else "width"].values


def growths(dataset, kind, stage="trained"):  # -> [R, W] x 2
    """What changes from the first layer to the last: the median log ratio, and the logarithm of
    the growth of the median |log ratio|."""
    if kind == TRAINED:
        axes = ("seed", "trained_width", "trained_layer")
        both = (dataset[f"trained_{name}"].sel(stage=stage) for name in ("median", "spread"))
    else:
        axes = ("run", "width", "layer")
        both = (dataset[name].sel(kind=kind) for name in ("median", "spread"))
    median, spread = (values.transpose(*axes).values for values in both)
    return median[..., -1] - median[..., 0], np.log(spread[..., -1] / spread[..., 0])


def risk_ratios(dataset) -> np.ndarray:  # [W]
    """The excess risk of trained stacks over that of ridge regression."""
    return (dataset.risk.mean("seed") / dataset.ridge.mean("seed")).values


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    most, numbers = results.config_of(dataset).trained, {}
    for name, (kind, _) in KINDS.items():
        lead, disparity = growths(dataset, kind)
        doublings = np.log2(widths(dataset, kind))
        centred = doublings - doublings.mean()
        if name in RELATIVE:
            lead = np.log(np.maximum(lead, 1e-3))
        of_lead, of_disparity = (rows @ centred / (centred @ centred) for rows in (lead, disparity))
        numbers |= {f"{name}_lead": of_lead, f"{name}_disparity": of_disparity}
        numbers[f"{name}_same"] = of_disparity
    if risk_ratios(dataset).max() > most:  # what is far from trained judges nobody
        numbers |= {id: None for id in numbers if id.startswith("trained")}
    return numbers
