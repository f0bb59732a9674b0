"""What a new order changes beside what other demonstrations do, and what is judged."""

import numpy as np

from experiments.descent.order import claims
from experiments.descent.order.config import KINDS, MASKS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

ROUNDING = 1e-10  # a relative change of a prediction up to this is no effect


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.9, 1.1), ((1, 1), (1,)))
    statements, samples = evidence(claims, dataset)
    shares(axes[0], dataset, statements[0].bounds[0])
    effects(axes[1], dataset)
    style.log_axes(axes[2], x=True, ticks=(1e-6, 1e-4, 0.01, 1))
    judged_panel.rows(axes[2], statements, samples, (1e-7, 2))
    axes[2].set(xlabel="at the kernel where it is least", title="what is judged, two causal layers")
    return figure


def shares(ax, dataset, bound):
    """The spread of causal predictions over orders beside that over other demonstrations."""
    depth = dataset.depth.values
    for i, kind in enumerate(KINDS):
        runs, look = dataset.share.sel(kind=kind, mask="causal"), style.METHOD[f"{kind}, causal"]
        x = depth + 0.08 * (i - 1)
        style.mean_points(ax, x, runs.transpose("run", "depth"), ls="-", lw=0.6, capsize=2, **look)
        end = runs.isel(depth=-1).mean().item()
        direct_label(ax, x[-1], end, f"{kind}, causal", look["color"], (7, 0))
    ax.plot([1.7, 2.3], [bound] * 2, color="grey", lw=1)
    direct_label(ax, 2, bound, "bound", "dimgrey", (0, -2))
    ax.set(title="a new order / other demonstrations", ylabel="spread of predictions, ratio")
    ax.set(xlabel="layers", xticks=depth, xlim=(0.7, depth[-1] + 1.2), ylim=(-0.03, None))


def effects(ax, dataset):
    """The largest change by a new order, which is rounding where a theorem says zero."""
    depth = dataset.depth.values
    smallest = np.finfo(float).eps / 100  # an exact zero has no logarithm
    style.log_axes(ax, y=True)
    for i, kind in enumerate(KINDS):
        for mask in MASKS:
            look = style.METHOD[kind if mask == "non-causal" else f"{kind}, causal"]
            runs = dataset.effect.sel(kind=kind, mask=mask).transpose("run", "depth")
            x = depth + 0.1 * (i - 1) + (0.03 if mask == "causal" else -0.03)
            style.band(ax, x, np.maximum(runs, smallest), None, **look)
            end, up = runs.isel(depth=-1).median().item(), {"linear": 3, "descent": -2}.get(kind, 0)
            text = kind if mask == "non-causal" else f"{kind}, causal"
            direct_label(ax, x[-1], end, text, look["color"], (7, up))
    ax.axhspan(smallest, ROUNDING, color="grey", alpha=0.12, lw=0)
    direct_label(ax, 0.7, ROUNDING, "rounding", "dimgrey", (3, -2))
    ax.set(title="largest change by a new order", ylabel="change / size of predictions")
    ax.set(xlabel="layers", xticks=depth, xlim=(0.7, depth[-1] + 1.2), ylim=(smallest, None))


def caption(dataset) -> str:
    config = results.config_of(dataset)
    causal = dataset.share.sel(mask="causal").mean("run")
    two, last = causal.sel(depth=2), causal.isel(depth=-1)
    free = dataset.effect.sel(mask="non-causal").max().item()
    single = dataset.effect.sel(mask="causal", depth=1).max().item()
    missing = style.missing(dataset.effect) + style.missing(dataset.share.sel(mask="causal"))
    return (
        f"It matters only for causal models of two layers or more: at two a new order spreads "
        f"predictions {float(two.min()):.2g} to {float(two.max()):.2g} times as much as other "
        f"demonstrations do. At {config.depth} layers {float(last.min()):.2g} to "
        f"{float(last.max()):.2g} times. That the order has no effect without causal masks, or on "
        f'one causal layer, is a theorem (docs/theory, "The order of demonstrations"); measured, '
        f"the largest changes are {free:.0e} and {single:.0e}. a: the other demonstrations are of "
        f"the same task; means of {config.runs} runs with {level()} intervals. b: medians and the "
        f"middle 80 % of runs; {missing} left out as not finite. c: {judged_panel.KEY}. "
        f"d = {config.d}, n = {config.n}."
    )
