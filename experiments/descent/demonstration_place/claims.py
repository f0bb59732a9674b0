"""What a place at an end has over the middle, as `demonstration_place` judges it."""

import numpy as np

from experiments.descent.demonstration_place.config import TRAINED, UNTRAINED
from lsa_lab import results
from lsa_lab.statistics import best_elsewhere


def shares(values):  # (..., place)
    """Errors or influences over their mean over places."""
    return values / values.mean("place")


def parts(values):  # (run, place) -> [R, quarter], [R], [R, quarter]
    """The first quarter of the places, the mean of the middle half, and the last quarter."""
    rows = values.transpose("run", "place").values
    quarter = max(1, rows.shape[1] // 4)
    return rows[:, :quarter], rows[:, quarter:-quarter].mean(1), rows[:, -quarter:]


def over_the_middle(worth) -> dict[str, np.ndarray]:  # (run, place) -> {name: [R]}
    """What the first and the last place are worth beyond the middle half, and what the quarter at
    either end is that is worth less to the other runs."""
    first, middle, last = parts(worth)
    ends = np.stack([first.mean(1), last.mean(1)], axis=1)
    return {
        "beginning": first[:, 0] - middle,
        "end": last[:, -1] - middle,
        "u_shape": -best_elsewhere(-ends) - middle,
    }


def both_ends(worth):  # (run, place) -> [R]
    first, middle, last = parts(worth)
    return (first.mean(1) + last.mean(1)) / 2 - middle


def over_least_squares(dataset):  # -> [R]
    return (dataset.ordinary.sel(kind=TRAINED) / dataset.least_squares).values


def help_of_it(dataset):  # -> [R]
    """The error with the relevant demonstration in its worst place over that without it."""
    places = dataset.error / dataset.ordinary
    return places.sel(kind=TRAINED).max("place").values


def trained_samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    """The samples of all rows on trained models, however well they are trained."""
    of = dataset.sel(kind=TRAINED)
    worth = {
        "": -shares(of.error),
        "noisy_": -shares(of.noisy),
        "influence_": shares(of.influence),
    }
    rows = {
        f"{prefix}{name}": values
        for prefix, by_place in worth.items()
        for name, values in over_the_middle(by_place).items()
    }
    return rows | {"it_helps": help_of_it(dataset)}


def samples(dataset) -> dict[str, np.ndarray | None]:  # {id: [R]}
    trained, ratio = trained_samples(dataset), over_least_squares(dataset)
    if np.exp(np.log(ratio).mean()) > results.config_of(dataset).near:
        trained = dict.fromkeys(trained)  # what is far from trained judges nobody
    of = dataset.sel(kind=UNTRAINED)
    return trained | {
        "untrained": both_ends(-shares(of.error)),
        "influence_untrained": both_ends(shares(of.influence)),
        "well_trained": ratio,
    }
