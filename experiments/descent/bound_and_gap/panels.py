"""The panels of `bound_and_gap`'s figure."""

import numpy as np

from experiments.descent.bound_and_gap.claims import least_bounds
from experiments.descent.bound_and_gap.config import GRID
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.store import results

LEAST, SPREAD, GAP = style.BLACK, "0.55", style.METHOD["descent"]["color"]
WORDS = {"noise": "noise", "shots": "demonstrations n", "depth": "layers"}


def whole_grid(ax, dataset):
    """Every place of the grid: n by shade, label noise by size."""
    from matplotlib import colormaps

    least, gaps = least_bounds(dataset).mean("group"), dataset.gap.mean("group")
    sizes = np.linspace(3, 6, dataset.sizes["noise"])
    style.log_axes(ax, x=True)
    left = 0.5 * float(gaps.where(gaps > 0).min())
    shades = colormaps["viridis"](np.linspace(0, 0.85, dataset.sizes["shots"]))
    for i, (n, shade) in enumerate(zip(dataset.shots.values, shades, strict=True)):
        for j, size in enumerate(sizes):
            here = {"shots": i, "noise": j}
            x, y = gaps.isel(here).values, least.isel(here).values
            ax.plot(x[x > 0], y[x > 0], "o", color=shade, ms=size, mec="white", mew=0.4)
            for value, height in zip(x[x <= 0], y[x <= 0], strict=True):
                ax.plot(left, height, "<", color=shade, mfc="white", ms=5, clip_on=False)
                direct_label(ax, left, height, f"{value:.1g}".replace("-", "\u2212"), shade, (5, 0))
        ax.plot([], [], "o", color=shade, label=f"n = {n:g}")
    ax.legend(loc="upper left")
    _losses_end(ax, dataset, float(gaps.max()), (-2, 2))
    ax.set(
        xlabel="gap, mean over tasks",
        ylabel="least bound over c",
        title="bound and gap, whole grid",
    )
    ax.set(xlim=(left, None), ylim=(0, None))


def axis_curves(ax, dataset, axis):
    """What one axis shows at the middle of the others; marks of bounds beside each other."""
    x, fixed = dataset[axis].values, [name for name in GRID if name != axis]
    at = cut(dataset, axis)
    style.log_axes(ax, x=axis == "shots", y=True, ticks=x)
    series = {
        "least bound": (least_bounds(dataset), LEAST, "o", -1, 9),
        "bound, c = spread": (dataset.spread_bound, SPREAD, "s", 1, -14),
        "gap": (dataset.gap, GAP, "^", 0, 12),
    }
    for name, (values, color, marker, aside, above) in series.items():
        runs = np.maximum(cut(values, axis).transpose("group", axis).values, 1e-9)
        beside = x * 1.06**aside if axis == "shots" else x + 0.02 * aside * (x[-1] - x[0])
        style.band(ax, beside, runs, None, color, marker)
        if axis == "shots":
            near = (len(x) - 1) // 2
            direct_label(ax, x[near], np.median(runs[:, near]), name, color, (0, above))
    ax.axhline(results.config_of(dataset).largest_loss, color="grey", lw=0.8, ls="--")
    ax.set(xlabel=WORDS[axis], xticks=x, ylim=(3e-3, 100))
    names = {"noise": "noise {:g}", "shots": "n = {:g}", "depth": "{:g} layers"}
    ax.set_title(", ".join(names[name].format(at[name].item()) for name in fixed))
    if axis == "shots":
        ax.set_ylabel("bound, gap")


def cut(values, axis=None):
    """The middle of every axis of the grid but one."""
    return values.isel({name: values.sizes[name] // 2 for name in GRID if name != axis})


def noise_curves(ax, dataset):
    """What the least bound is the least of, at the middle of the grid."""
    at, c = cut(dataset), dataset.update_noise.values
    total = (at.noisy_bound + at.noise_cost).transpose("group", "update_noise").values
    gap = np.abs(at.noisy_gap).transpose("group", "update_noise").values
    bound, cost = (at[name].mean("group").values for name in ("noisy_bound", "noise_cost"))
    style.line(ax, c, bound, color=SPREAD, style="--")
    style.line(ax, c, cost, color=SPREAD, style=":")
    style.mean_band(ax, c, total, None, LEAST, None)
    style.mean_band(ax, c, gap, None, GAP, None)
    direct_label(ax, c[0], total[:, 0].mean(), "bound + cost", LEAST, (2, 4))
    direct_label(ax, c[-1], bound[-1], "bound", SPREAD, (4, 1))
    direct_label(ax, c[-1], cost[-1], "cost", SPREAD, (4, 0))
    direct_label(ax, c[0], gap[:, 0].mean(), "|gap|", GAP, (2, 4))
    _losses_end(ax, dataset, c[0])
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="c, the noise of an update", ylabel="bound, gap", ylim=(1e-5, 300))
    off_scale(ax, c, gap.mean(axis=0), GAP, ".0g")
    ax.set_title("at the middle of the grid")


def _losses_end(ax, dataset, x, offset=(2, -2)):
    largest = results.config_of(dataset).largest_loss
    ax.axhline(largest, color="grey", lw=0.8, ls="--")
    direct_label(ax, x, largest, f"losses end at {largest:g}", "dimgrey", offset)
