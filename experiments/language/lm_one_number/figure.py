"""What clipping gains beside one number of the answer, and what it leaves."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_one_number import claims
from experiments.language.lm_one_number.config import KINDS, METHODS, THRESHOLD, UNEDITED
from lsa_lab.harness.draw import style
from lsa_lab.store import results

READINGS = "accuracy", "auc"


def plot(dataset):
    figure, axes = style.figure(6.75, 2.8, (1, 2))
    numbers = claims.numbers(dataset)
    for ax, reading in zip(axes, READINGS, strict=True):
        plot_changes(ax, numbers, reading)
    axes[0].set_title(f"One threshold adds {numbers.gain(THRESHOLD).mean():z.3f}")
    axes[1].set_title(f"Algorithm 1 adds {numbers.searched(KINDS[0], 'auc').mean():z.3f}")
    axes[1].set_yticklabels([])
    return figure


def plot_changes(ax, numbers, reading):
    """A row a method: the mean over all sets and its interval, and each collection's mean."""
    names = [name for name in METHODS if name != UNEDITED]
    runs, by_task = (
        np.stack([values(name, reading) for name in names], axis=1)
        for values in (numbers.gain, numbers.by_task)
    )
    ax.plot(by_task.T, range(len(names)), "|", color="grey", ms=7)
    style.mean_rows(ax, range(len(names)), runs, color=style.COLOURS[0], marker="o")
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="change of " + reading.replace("auc", "AUC"))


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    gain, auc = (float(numbers.searched(KINDS[0], name).mean()) for name in READINGS)
    random = float(numbers.searched(KINDS[1]).mean())
    attention = [float(numbers.gain(f"{kind}, attention").mean()) for kind in KINDS]
    return (
        f"Algorithm 1 changes the accuracy of {called(config.model_name)} by {gain:+.3f} and the "
        f"AUC by {auc:+.3f}. One threshold, fitted on the same sentences, changes accuracy by "
        f"{float(numbers.gain(THRESHOLD).mean()):+.3f}. Random edits of the same size change it "
        f"by {random:+.3f}; on attention alone by {attention[1]:+.3f}, where Algorithm 1 changes "
        f"it by {attention[0]:+.3f}. A fitted temperature may turn the order of answers where the "
        f"AUC is near .5. Grey strokes are means of {len(config.tasks)} collections of "
        f"{config.runs} runs each, and bars are intervals over all {len(numbers.gain(UNEDITED))}."
    )
