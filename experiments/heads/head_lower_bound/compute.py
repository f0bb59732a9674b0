"""The searches for a layer that preprocesses, and the risks of descent without such a layer."""

import numpy as np

from experiments.heads.head_lower_bound.config import Config
from experiments.heads.head_lower_bound.heads_needed import risks, searches, searches_for_images


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    of_image, built = searches_for_images(config)
    axes = ("rank", "image_heads", "image_restart")
    return xr.Dataset(
        {
            "residual": (("d", "heads", "restart"), searches(config)),
            "of_image": (axes, of_image),
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
