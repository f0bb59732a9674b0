"""A map of what each truncation does: a row for each matrix, a column for each rank kept."""

import numpy as np

from experiments.clipping.clipping_and_bound.claims import EXACT
from lsa_lab.harness.draw import style

COLOURS = "RdBu_r"  # red where a number rises
LEAST = 0.05  # changes of the median below it are not written


def rank_map(ax, values, names):  # (run, module, layer, rank) -> image
    """The share of runs in which a truncation raises the number, coloured; the median run's number
    over that of the matrix whole, written where it differs."""
    values = values.transpose("module", "layer", "rank", "run")
    whole, clipped = values.isel(rank=[0]), values.isel(rank=slice(1, None))
    rises = (clipped.values - whole.values > EXACT * abs(whole.values)).mean(-1)
    middle = np.median(clipped.values / whole.values, axis=-1)
    rises, middle = (each.reshape(-1, each.shape[-1]) for each in (rises, middle))
    image = ax.imshow(rises, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    for (row, column), ratio in np.ndenumerate(middle):
        if abs(ratio - 1) < LEAST:
            continue
        pale = abs(rises[row, column] - 0.5) > 0.3
        ax.text(
            *(column, row, two_digits(ratio)),
            **dict(ha="center", va="center", fontsize=7, color="white" if pale else style.BLACK),
        )
    ranks, layers = clipped["rank"].values, len(values.layer)
    ax.axhline(layers - 0.5, color="white", lw=2)
    rows = [f"{m}, layer {t}" for m in values.module.values for t in values.layer.values]
    ax.set_yticks(range(len(rows)), rows if names else [""] * len(rows))
    ax.set_xticks(range(len(ranks)), [f"{rank}" for rank in ranks])
    ax.set(xlabel="rank kept (0: dropped)")
    ax.tick_params(length=0, labelsize=7)
    ax.spines[:].set_visible(False)
    return image


def two_digits(ratio) -> str:
    """Two digits, for a cell."""
    text = f"{ratio:.0f}" if abs(ratio) >= 9.95 else f"{ratio:.1f}"
    return text.replace("-", "\u2212")


def colour_bar(figure, image, axes):
    bar = figure.colorbar(image, ax=axes, ticks=[0, 0.5, 1], aspect=30, pad=0.02)
    bar.set_ticklabels(["0", "½", "1"])
    bar.set_label("share of stacks in which it rises", fontsize=7)
    bar.ax.tick_params(labelsize=7, length=0)
    bar.outline.set_visible(False)
