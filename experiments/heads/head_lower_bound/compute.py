"""How many heads must the first layer have to preprocess d covariates?"""

import numpy as np

from experiments.heads.head_lower_bound.config import FLOOR, Config
from experiments.heads.head_lower_bound.heads_needed import risks, searches, searches_for_images
from lsa_lab.harness import style


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    searched, built = searches_for_images(config)
    axes = ("rank", "image_heads", "image_restart")
    return xr.Dataset(
        {
            "residual": (("d", "heads", "restart"), searches(config)),
            "of_image": (axes, searched),
            "built": (axes, built),
            "risk": (("run", "used"), risks(config)),
        },
        {
            "d": list(config.sizes),
            "heads": np.arange(1, max(config.sizes) + 1),
            "rank": np.arange(1, config.image_d),
            "image_heads": np.arange(1, config.image_d),
            "used": list(config.heads),
        },
    )


def searched(ax, x, ends, least, label, i):  # [heads], [heads, restarts], [heads]
    """Where each search ends, as dots, and a line through the least residuals."""
    color, marker = style.COLOURS[i], style.MARKERS[i]
    ends, least = np.maximum(ends, FLOOR), np.maximum(least, FLOOR)
    ax.plot(x, ends, ".", color=color, alpha=0.35, markersize=6, markeredgewidth=0)
    ax.plot(x, least, marker=marker, color=color, label=label)
