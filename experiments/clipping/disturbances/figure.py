"""Moves of answers by condition number, what clipping changes of them, and what is judged."""

import numpy as np

from experiments.clipping.disturbances import claims
from experiments.clipping.disturbances.config import KINDS, MODULES
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.transformers import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.6, 2.4), ((1, 1), (1, 1)))
    for ax, kind in zip(axes, KINDS, strict=False):
        plot_moves(ax, dataset, kind)
    axes[0].legend(fontsize=7, ncols=2)
    plot_clipped(axes[2], dataset)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-1, 1))
    axes[3].set(title="what is judged", xlabel="correlation, or log₁₀ ratio")
    return figure


def plot_moves(ax, dataset, kind):
    """Every matrix of every run."""
    looks = zip(MODULES, style.COLOURS, style.MARKERS, strict=True)
    for module, color, marker in looks:
        own = dataset.sel(module=module)
        x, y = own.condition.values.ravel(), own.move.sel(kind=kind).values.ravel()
        ax.plot(x, y, marker, color=color, ms=2.5, mfc="none", mew=0.6, label=module)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="condition number", ylabel="move of answers, relative")
    ax.set_title(f"{kind} disturbed")


def plot_clipped(ax, dataset):
    """Clipped over whole by module, beside the ratio of |W|_F²."""
    ratio = claims.removed_share(dataset).mean("layer")
    share = np.log10(dataset["share"]).mean("layer")
    x = np.arange(len(MODULES))
    for values, words, color, aside in (
        (ratio, "disturbance", style.COLOURS[0], -0.1),
        (share, "|W|²", style.COLOURS[1], 0.1),
    ):
        rows = values.transpose("run", "module").values
        style.mean_points(ax, x + aside, rows, words, fmt="o", color=color, capsize=2)
    ax.axhline(0, color="grey", lw=0.8, ls="--")
    ax.set_xticks(x, list(MODULES), fontsize=7)
    ax.set(ylabel="log₁₀ clipped / whole", title="W clipped, input disturbed")
    ax.legend()


def caption(dataset) -> str:
    config = results.config_of(dataset)
    _, samples = evidence(claims, dataset)
    moves = dataset.move.sel(kind="input")
    depth = claims.rank_correlation(dataset.layer.broadcast_like(moves), moves).mean()
    far = float(np.exp(np.log(dataset.unclipped / dataset.ridge).mean()))
    return (
        f"Over the layers of a trained transformer condition numbers correlate by "
        f"{samples['input_spreads'].mean():.2f} with what a disturbed input and by "
        f"{samples['weights_spread'].mean():.2f} with what disturbed weights do to answers. "
        f"With a disturbed input depth itself correlates by {depth:.2f}. "
        f"a, b: every matrix of every run, disturbed by {config.level:g} of its "
        f"size, means of {config.draws} draws on {config.prompts} prompts of each run; moves are "
        f"mean squares over those of answers. c: means of runs with {level()} intervals; rate "
        f"{config.rate:g}. d: {judged_panel.KEY}. {dataset.sizes['run']} runs ({left_out(dataset)} "
        f"diverged and left out) with {far:.2g} times the risk of ridge regression; "
        f"d = {spec_of(config).task.d}."
    )
