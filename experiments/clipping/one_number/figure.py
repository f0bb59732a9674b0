"""How far clipping is an affine map of the answer, and what it gains beyond one."""

import numpy as np

from experiments.clipping.clipped_models import PARTS
from experiments.clipping.drawing import plot_rows
from experiments.clipping.one_number import claims
from experiments.clipping.one_number.claims import NAMES
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
            label = f"{NAMES[model]}, {kind_name}"
            style.mean_band(ax, dataset.layer.values, runs, label, color, marker, line)
    ax.set(xticks=dataset.layer.values, xlabel="layer that is edited", ylim=(0, 1))
    ax.set_ylabel("affine share of the change")
    ax.set_title("Early layers' change is not affine")
    ax.legend(fontsize=7)


def plot_beyond(ax, dataset):
    """A row a task: what Algorithm 1 gains beyond an affine map, by part."""
    numbers = claims.numbers(dataset)
    series = {
        part: np.stack([numbers.beyond(part, task) for task in TASKS], axis=1) for part in PARTS
    }
    plot_rows(ax, TASKS, series)
    wins = sum(int((runs.mean(0) > claims.NOTHING).sum()) for runs in series.values())
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set(ylim=(len(TASKS) - 0.4, -0.6), xlabel="gain beyond an affine map")
    ax.set_title(f"Beyond it, {wins} of {len(PARTS) * len(TASKS)} cells gain")
    ax.legend(fontsize=7, loc="upper right")


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    shares = [numbers.shares(model, part).mean() for model in NAMES for part in PARTS]
    edit, random = (numbers.beyond("MLP", NO_NOISE, kind).mean() for kind in KINDS)
    return (
        f"An affine map of the answer accounts for {min(shares):.0%} to {max(shares):.0%} of what "
        "clipping changes, by model and part, averaged over layers and rates. "
        "Clipping rarely gains beyond such a map. "
        "Without noise Algorithm 1 on the MLP gains "
        f"{edit:+.0%} of the risk beyond it, and a random edit of the same size {random:+.0%}. In "
        "two-class models Algorithm 1 changes accuracy by "
        f"{numbers.searched(CLIPPED).mean():+.4f}. Bands and bars are intervals over "
        f"{dataset.sizes['run']} runs, on {config.test} test prompts each. "
    )
