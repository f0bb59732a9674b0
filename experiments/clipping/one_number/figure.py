"""How far clipping is an affine map of the answer, and what it gains beyond one."""

import numpy as np

from experiments.clipping.clipped_models import PARTS
from experiments.clipping.one_number import claims
from experiments.clipping.one_number.config import CLIPPED, KINDS, NO_NOISE, TASKS
from lsa_lab.harness.draw import style
from lsa_lab.store import results


def plot(dataset):
    return style.panels(dataset, 2.8, plot_shares, plot_beyond)


def plot_shares(ax, dataset):
    """A curve for each model and kind of edit: the share of the change, by layer."""
    rows = dataset.shares.sel(measure="share").mean(("part", "clipping"))
    looks = zip(style.COLOURS, style.MARKERS, rows.model.values, strict=False)
    for color, marker, model in looks:
        for kind, line in zip(KINDS, ("-", "--"), strict=True):
            runs = rows.sel(model=model, kind=kind).transpose("run", "layer")
            kind_name = "clipping" if kind == CLIPPED else kind
            label = f"{claims.NAMES[model]}, {kind_name}"
            style.mean_band(ax, dataset.layer.values, runs, label, color, marker, line)
    ax.set(xticks=dataset.layer.values, xlabel="layer that is edited", ylim=(0, 1))
    ax.set_ylabel("affine share of the change")
    ax.set_title("Early layers' change is not affine")
    ax.legend(fontsize=7)


def plot_beyond(ax, dataset):
    """A row a task: what Algorithm 1 gains beyond an affine map, by part."""
    numbers, wins = claims.numbers(dataset), 0
    for i, part in enumerate(PARTS):
        runs = np.stack([numbers.beyond(part, task) for task in TASKS], axis=1)
        wins += int((runs.mean(0) > claims.NOTHING).sum())
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i], ms=4, label=part)
        style.mean_rows(ax, np.arange(len(TASKS)) + 0.2 * (i - 0.5), runs, **look)
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_yticks(range(len(TASKS)), TASKS)
    ax.set(ylim=(len(TASKS) - 0.4, -0.6), xlabel="gain beyond an affine map")
    ax.set_title(f"Beyond it, {wins} of {len(PARTS) * len(TASKS)} cells gain")
    ax.legend(fontsize=7, loc="upper right")


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    shares = [
        numbers.shares(model, part, "share").mean() for model in claims.NAMES for part in PARTS
    ]
    least, most = min(shares), max(shares)
    return (
        f"An affine map of the answer accounts for {least:.0%} to {most:.0%} of what clipping "
        "changes, by model and part, on average over layers. Clipping rarely gains beyond it. "
        "Without noise Algorithm 1 on the MLP gains "
        f"{float(numbers.beyond('MLP', NO_NOISE).mean()):+.0%} of the risk beyond it; a random "
        f"edit as large {float(numbers.beyond('MLP', NO_NOISE, KINDS[1]).mean()):+.0%}. Of "
        "two-class models "
        f"Algorithm 1 changes accuracy by {float(numbers.searched(CLIPPED).mean()):+.4f}. Bands "
        f"and bars are intervals over {dataset.sizes['run']} runs, on {config.test} test prompts "
        "each. "
    )
