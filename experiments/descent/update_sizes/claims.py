"""Slopes of the sizes of updates over the number of shots."""

import numpy as np


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    plain, linear = dataset["size"], slope(dataset.linear)
    return {
        "linear_grows": linear,
        "linear_grows_as_in_the_paper": linear + 1,
        "softmax_grows": slope(plain.sel(kind="update")),
        "softmax_grows_as_in_the_paper": slope(plain.sel(kind="paper")),
        "written_grows": slope(plain.sel(kind="written")),
        "more_sensitive": slope(plain.sel(kind="change")),
        "relatively_more_sensitive": slope(plain.sel(kind="relative change")),
    }


def slope(sizes) -> np.ndarray:  # (run, factor, layer) -> [R]
    """d log / d log n from half to twice the shots of training, the mean over layers."""
    layer = next(axis for axis in sizes.dims if axis.endswith("layer"))
    logs = np.log(sizes).mean(layer)
    return ((logs.sel(factor=2.0) - logs.sel(factor=0.5)) / np.log(4)).values


def over_ridge(dataset) -> float:
    """The geometric mean over runs of the softmax models' risk over that of ridge regression."""
    ratio = dataset.risk.sel(rule="model") / dataset.risk.sel(rule="ridge")
    return float(np.exp(np.log(ratio).mean()))
