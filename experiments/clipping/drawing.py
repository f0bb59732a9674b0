"""What figures on clipping share: colours of layers, rows of intervals, how good the models are."""

import numpy as np

from experiments.clipping.clipped_models import DROPPED
from lsa_lab.harness.draw import style


def quality(dataset, risk, ridge, where="") -> str:
    """How near to ridge regression the models are that a caption speaks of, and how many it leaves
    out, for they diverged in training."""
    far = float(np.exp(np.log(risk / ridge).mean()))
    diverged = sum(text.startswith("diverged") for text in dataset.status.values)
    others = f" Another {diverged} diverged." if diverged else ""
    return f"The {dataset.sizes['run']} models have {far:.3g} times ridge's risk{where}.{others} "


def plot_rows(ax, names, series, apart=0.2):
    """A row for each name, in it a mean with its interval for each of ``series`` [R, names]."""
    for i, (label, runs) in enumerate(series.items()):
        y = np.arange(len(names)) + apart * (i - (len(series) - 1) / 2)
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i], ms=4, label=label)
        style.mean_rows(ax, y, runs, **look)
    ax.set_yticks(range(len(names)), names)


def rate_labels(rates) -> list[str]:
    return ["drop" if rate == DROPPED else f"{rate:g}".lstrip("0") for rate in rates]


def shades(count):  # -> [count, 4]
    """A colour for each layer, the deeper the paler."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.8, count))
