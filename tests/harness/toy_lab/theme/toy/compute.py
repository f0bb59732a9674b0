"""The means of n normal numbers, one of them lost."""

import os
import signal

import numpy as np
import xarray as xr


def compute(config, models, *, progress=None, checkpoints=None):
    from lsa_lab.store import processes

    if progress is not None:
        progress.add_task("toy", total=1)
    (checkpoints / "half").touch()
    if os.environ.get("TOY_INTERRUPT"):
        raise {"Ctrl-C": KeyboardInterrupt, "SIGTERM": SystemExit(143)}[os.environ["TOY_INTERRUPT"]]
    if os.environ.get("TOY_KILL") == f"share {processes.index()}":
        os.kill(os.getpid(), signal.SIGKILL)
    means = np.random.default_rng(config.seed).normal(size=(config.n, 8, 9)).mean(0)
    share = processes.share(8)
    means = processes.gather(means[share.start : share.stop], 8, label="means")
    means[0, 0] = np.nan
    return xr.Dataset({"mean": (("run", "x"), means)}, {"x": np.arange(9.0)})
