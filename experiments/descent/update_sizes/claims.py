"""Slopes of the sizes of updates over the number of shots, and what a norm changes."""

import numpy as np


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    plain = dataset["size"].sel(model="no norm")
    own = dataset["size"].sel(factor=1.0).mean("layer")
    risk, gap = dataset.risk.sel(rule="model"), gaps(dataset)
    linear = slope(dataset.linear)
    return {
        "linear_grows": linear,
        "linear_grows_as_in_the_paper": linear + 1,
        "softmax_grows": slope(plain.sel(kind="update")),
        "softmax_grows_as_in_the_paper": slope(plain.sel(kind="paper")),
        "written_grows": slope(plain.sel(kind="written")),
        "more_sensitive": slope(plain.sel(kind="change")),
        "relatively_more_sensitive": slope(plain.sel(kind="relative change")),
        "norm_shrinks": with_over_without(own.sel(kind="update")),
        "norm_shrinks_share": with_over_without(own.sel(kind="share")),
        "norm_lowers_gap": (gap.sel(model="norm") - gap.sel(model="no norm")).values,
        "norm_lowers_risk": with_over_without(risk),
    }


def slope(sizes) -> np.ndarray:  # (run, factor, layer) -> [R]
    """d log / d log n from half to twice the shots of training, of the mean over layers."""
    layer = next(axis for axis in sizes.dims if axis.endswith("layer"))
    mean = sizes.mean(layer)
    return (np.log(mean.sel(factor=2.0) / mean.sel(factor=0.5)) / np.log(4)).values


def gaps(dataset):  # (model, run)
    """The error on a fresh query, its label with noise, less that on the demonstrations."""
    return dataset.loss.sel(on="query") - dataset.loss.sel(on="demonstrations")


def with_over_without(values) -> np.ndarray:  # (model, run) -> [R]
    return (values.sel(model="norm") / values.sel(model="no norm")).values


def over_ridge(dataset) -> dict[str, float]:
    """The geometric mean over runs of the risk over that of ridge regression."""
    ratio = dataset.risk.sel(rule="model") / dataset.risk.sel(rule="ridge")
    return {
        name: float(np.exp(np.log(ratio.sel(model=name)).mean())) for name in ratio.model.values
    }
