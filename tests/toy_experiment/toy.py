"""An experiment that exists only for the tests of the harness."""

# The tests put experiments.configs.toy in its place, where ruff does not look.

import os

import numpy as np
import xarray as xr

from experiments.configs.toy import TIERS, Config
from lsa_lab.claims import Claim, about_the_mean
from lsa_lab.harness import style

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config, *, progress=None, checkpoints=None):
    if progress is not None:
        progress.add_task("toy", total=1)
    (checkpoints / "half").touch()
    if os.environ.get("TOY_INTERRUPT"):
        raise KeyboardInterrupt
    means = np.random.default_rng(config.seed).normal(size=(config.n, 8, 9)).mean(0)
    means[0, 0] = np.nan
    return xr.Dataset({"mean": (("run", "x"), means)}, {"x": np.arange(9.0)})


def plot(dataset):
    drawn, (ax,) = style.figure(3.5, 2.5)
    lost = style.band(ax, dataset.x, dataset["mean"], label="runs")
    style.line(ax, dataset.x, 0 * dataset.x, label="theory")
    ax.legend()
    style.caption(drawn, f"The mean of n numbers; {lost} left out.")
    return drawn


def claims(dataset):
    source = "derived here"
    runs = dataset["mean"].values[:, 1:].mean(1)
    text = "The mean is small, whether a < b or a | b"
    return [
        about_the_mean("toy.mean", source, text, "mean <= 9", runs, at_most=9),
        about_the_mean("toy.wrong", source, "It is large", "mean >= 9", runs, at_least=9),
        Claim("toy.few", source, "Nobody knows", "none", 0.0, (-np.inf, np.inf), "undecided"),
    ]
