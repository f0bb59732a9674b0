"""The means of n normal numbers, one of them lost."""

import os

import numpy as np
import xarray as xr


def compute(config, *, progress=None, checkpoints=None):
    if progress is not None:
        progress.add_task("toy", total=1)
    (checkpoints / "half").touch()
    if os.environ.get("TOY_INTERRUPT"):
        raise KeyboardInterrupt
    means = np.random.default_rng(config.seed).normal(size=(config.n, 8, 9)).mean(0)
    means[0, 0] = np.nan
    return xr.Dataset({"mean": (("run", "x"), means)}, {"x": np.arange(9.0)})
