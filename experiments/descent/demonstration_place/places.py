"""What a demonstration is worth by its place, for each run."""

import numpy as np

from experiments.descent.demonstration_place.config import TRAINED, UNTRAINED
from lsa_lab.judging.statistics import best_elsewhere

NEAR = 1.5  # risk over least squares' on prompts as in training: at most this is trained


class Places:
    """What a demonstration is worth by its place, "error" and "noisy", and its "influence"."""

    def __init__(self, dataset):
        self.dataset = dataset
        # The excess risk over that of least squares, [R].
        self.over_least_squares = (
            dataset.ordinary.sel(kind=TRAINED) / dataset.least_squares
        ).values
        self.far = np.exp(np.log(self.over_least_squares).mean()) > NEAR

    def trained(self, values):  # -> [R]
        """None from models that are far from trained, which judge nobody."""
        return None if self.far else values

    def parts(self, reading, kind):  # -> [R, quarter], [R], [R, quarter]
        """The worth in the first quarter of the places, the mean of the middle half, and the last
        quarter."""
        worth = shares(self.dataset[reading].sel(kind=kind))
        rows = (worth if reading == "influence" else -worth).transpose("run", "place").values
        quarter = max(1, rows.shape[1] // 4)
        return rows[:, :quarter], rows[:, quarter:-quarter].mean(1), rows[:, -quarter:]

    def end(self, reading, place):  # [R]
        """What the first or the last place is worth beyond the middle half."""
        first, middle, last = self.parts(reading, TRAINED)
        return (first[:, 0] if place == "beginning" else last[:, -1]) - middle

    def lesser_quarter(self, reading):  # [R]
        """What that quarter at either end is, which is worth less to the other runs."""
        first, middle, last = self.parts(reading, TRAINED)
        ends = np.stack([first.mean(1), last.mean(1)], axis=1)
        return -best_elsewhere(-ends) - middle

    def both_ends(self, reading):  # [R]
        """What both quarters are to untrained models."""
        first, middle, last = self.parts(reading, UNTRAINED)
        return (first.mean(1) + last.mean(1)) / 2 - middle

    @property
    def worst_help(self):  # [R]
        """The error with the relevant demonstration in its worst place over that without it."""
        places = self.dataset.error / self.dataset.ordinary
        return places.sel(kind=TRAINED).max("place").values


def shares(values):  # (..., place)
    """Errors or influences over their mean over places."""
    return values / values.mean("place")
