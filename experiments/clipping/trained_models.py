"""What the experiments on clipping share: the trained models, their error, and how it is drawn."""

import jax
import numpy as np

from experiments.models import stacks
from lsa_lab.statistics import mean_interval

PARTS = {"attention": "attention", "MLP": "mlp"}  # the modules that A2 cuts


def trained(config, label, progress=None):  # -> Stack, params [R', looks+1, ...], statuses [R]
    """The models of ``configs.clipped``, those that diverged left out, at every look."""
    stack = stacks.clipped_stack(config)
    run = stacks.trained(
        stack, config.runs, config.training_seed, label, progress, looks=config.looks
    )
    well = np.array([status.kind != "diverged" for status in run.status])
    watched = jax.tree.map(lambda leaf: np.asarray(leaf)[well], run.history["watch"])
    return stack, watched, [str(status) for status in run.status]


def final(watched):  # [R', looks+1, ...] -> [R', ...]
    """The params after the last step."""
    return jax.tree.map(lambda leaf: leaf[:, -1], watched)


def squared_error(stack):
    """(params, prompts [B]) -> the excess error of each [B]; made once, it is compiled once."""
    predicted = stacks.predictions(stack)
    return lambda params, batch: (predicted(params, batch) - batch.y_query) ** 2


def left_out(dataset) -> str:
    """For a caption: how many runs are shown and how many diverged."""
    lost = int(dataset.status.str.startswith("diverged").sum())
    return f"{dataset.sizes['run']} runs ({lost} diverged and left out)"


def shallow_and_deep(values, count):
    """The first layers and the last ones, ``count`` of them, averaged."""
    return [values.isel(layer=some).mean("layer") for some in (slice(count), slice(-count, None))]


def mean_band(ax, x, samples, label=None, color=None, marker="o", style="-") -> None:
    """Runs ``samples`` [R, len(x)]: their mean, and its 95 % interval as a band."""
    samples = np.asarray(samples)
    low, high = np.transpose([mean_interval(column) for column in samples.T])
    ax.plot(x, samples.mean(0), style, marker=marker, color=color, label=label)
    if np.isfinite(low).all():  # not known from one run
        ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
