"""The error in the middle less that at the ends, as `demonstration_place` judges it."""

import numpy as np

from experiments.descent.demonstration_place.config import TRAINED, UNTRAINED


def shares(dataset):  # -> (kind, run, place)
    """The errors over their mean over places."""
    return dataset.error / dataset.error.mean("place")


def parts(values):  # (run, place) -> [R, quarter], [R], [R, quarter]
    """The first quarter of the places, the mean of the middle half, and the last quarter."""
    rows = values.transpose("run", "place").values
    quarter = max(1, rows.shape[1] // 4)
    return rows[:, :quarter], rows[:, quarter:-quarter].mean(1), rows[:, -quarter:]


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    relative = shares(dataset)
    first, middle, last = parts(relative.sel(kind=TRAINED))
    ends = np.stack([first.mean(1), last.mean(1)])
    others = ends.sum(1, keepdims=True) - ends
    worse = ends[others.argmax(0), np.arange(len(middle))]
    first_, middle_, last_ = parts(relative.sel(kind=UNTRAINED))
    trained = dataset.sel(kind=TRAINED)
    return {
        "beginning": middle - first[:, 0],
        "end": middle - last[:, -1],
        "u_shape": middle - worse,
        "untrained": middle_ - (first_.mean(1) + last_.mean(1)) / 2,
        "it_helps": (trained.error.mean("place") / trained.ordinary).values,
        "near_ridge": (trained.ordinary / dataset.ridge).values,
    }
