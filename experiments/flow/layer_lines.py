"""What becomes of two flows, layer by layer: lines on a logarithmic axis, named at their ends."""

import numpy as np

from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label

RATIOS = (0.2, 0.5, 1, 2, 5, 10, 100)


def draw(ax, change, label, name, beside=0.0, offset=(4, 0), **look):  # change [R, L] -> [L]
    """Medians over runs with their intervals, and a label at the last one; ``name`` is a method's.

    All lines begin at the first layer, and lie ``beside`` each other after it.
    """
    layers = np.arange(change.shape[1]) + 1
    look, middle = style.METHOD[name] | look, np.median(change, axis=0)
    x = layers + 0.07 * beside * (layers > 1)
    style.median_points(ax, x, change, capsize=1.5, elinewidth=0.8, lw=0.8, ms=4, **look)
    if label:
        direct_label(ax, layers[-1], middle[-1], label, look["color"], offset)
    return middle


def finish(ax, depth, factor, room=0.3):
    """Axes with ``room`` for names, in layers; in grey what is no change."""
    ax.axhspan(1 / factor, factor, color="grey", alpha=0.2, lw=0)
    ax.set(yscale="log", xlabel="layers", xlim=(0.7, depth + room), xticks=range(1, depth + 1))
    decimals(ax.yaxis, ax.get_ylim())


def decimals(axis, limits):
    """Ticks of a logarithmic axis, as decimals."""
    ticks = [tick for tick in RATIOS if limits[0] <= tick <= limits[1]]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)
