"""Each log's scores by rate, and gains on validation beside those on test."""

import numpy as np

from experiments.clipping.drawing import shades
from experiments.clipping.published_logs import claims
from experiments.clipping.published_logs.config import ENDS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results


def plot(dataset):
    return style.panels(dataset, 2.7, rate_curves, search_points)


def rate_curves(ax, dataset):
    """The change of the score, a line for each end of the models."""
    rows = claims.numbers(dataset).change
    places = np.arange(rows.sizes["rate"])
    for end, color, marker in zip(ENDS, shades(len(ENDS)), "os", strict=True):
        runs = rows.sel(end=end)
        ax.plot(places, runs.values.T, "-", color=color, lw=0.4, alpha=0.5)
        middle = runs.mean("log")
        ax.plot(places, middle, marker=marker, color=color, lw=1.5)
        above = 9 if end == ENDS[1] else -9  # off the line of no change
        direct_label(ax, places[-1], float(middle[-1]), f"{end} layers", color, (6, above))
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_xticks(places, [f"{rate:g}" for rate in rows.rate.values])
    ax.set(xlabel="clipping rate", ylabel="change of the score, validation")
    ax.set(xlim=(-0.3, places[-1] + 2), title="First layers lose, last ones do not")


def search_points(ax, dataset):
    """The gain of the best rate on validation, and what is left of it."""
    validation, test = claims.numbers(dataset).gains
    for end, color, marker in zip(ENDS, shades(len(ENDS)), "os", strict=True):
        points = validation.sel(end=end), test.sel(end=end)
        ax.plot(*points, marker, ls="none", color=color, alpha=0.8, label=f"{end} layers")
    most = float(validation.max())
    ax.plot([0, most], [0, most], color="grey", lw=0.8)
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set(xlabel="gain on validation, best rate", ylabel="gain on test")
    ax.set_title("What a search gains does not last")
    ax.legend(loc="upper left")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    mean = {id: float(np.mean(values)) for id, values in samples.items()}
    _, test = claims.numbers(dataset).gains
    wins, losses = int((test > 0).sum()), int((test < 0).sum())
    return (
        "In A2's own logs a searched rate changes the score on test by "
        f"{mean['search_gains']:+.3f}. "
        f"Sharp clipping changes the score by {mean['shallow_degrades']:+.3f} in the first layers "
        f"and by {mean['deep_is_flat']:+.3f} in the last. In b {wins} of {test.size} searches gain "
        f"and {losses} lose. On the grey line nothing would be lost to selection. Unclipped the "
        f"score is {float(dataset.score.sel(rate=0).mean()):.3f} on {' and '.join(config.tasks)}. "
        "Logs of one model and task share their prompts, and their intervals may be too short. "
    )
