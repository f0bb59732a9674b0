"""A2's bound beside the gap over the whole grid, and what clipping does to the bound and the
risk."""

import numpy as np

from experiments.clipping.bound_and_gap import claims
from experiments.clipping.bound_and_gap.claims import CELLS, EXACT, changes, least_bounds
from experiments.clipping.drawing import quality, shades
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

TICKS = {-0.01: "\u22121%", 0: "0", 0.01: "+1%", 1: "+100%", 100: "+10000%"}  # of changes


def plot(dataset):
    return style.panels(dataset, 3.0, whole_grid, plot_truncations)


def whole_grid(ax, dataset):
    """Every place of the grid: n by shade, label noise by size."""
    dataset = parts.part(dataset)
    least, gaps = least_bounds(dataset).mean("group"), dataset.gap.mean("group")
    sizes = np.linspace(3, 6, dataset.sizes["noise"])
    style.log_axes(ax, x=True)
    left = 0.5 * float(gaps.where(gaps > 0).min())
    for n, shade in zip(dataset.shots.values, shades(len(dataset.shots)), strict=True):
        for noise, size in zip(dataset.noise.values, sizes, strict=True):
            x, y = (values.sel(shots=n, noise=noise).values for values in (gaps, least))
            ax.plot(x[x > 0], y[x > 0], "o", color=shade, ms=size, mec="white", mew=0.4)
            for value, height in zip(x[x <= 0], y[x <= 0], strict=True):
                ax.plot(left, height, "<", color=shade, mfc="white", ms=5, clip_on=False)
                label = f"{value:.1g}".replace("-", "\u2212")
                direct_label(ax, left, height, label, shade, (5, -2))
        ax.plot([], [], "o", color=shade, label=f"n = {n:g}")
    ax.legend(loc="upper left")
    largest = results.config_of(dataset).largest_loss
    ax.axhline(largest, color="grey", lw=0.8, ls="--")
    direct_label(ax, left, largest, f"losses end at {largest:g}", "dimgrey", (4, 2))
    ax.set(xlabel="gap, mean over tasks", ylabel="least bound over c")
    ax.set(xlim=(left, None), ylim=(0, None), title="Bound and gap fall with n")


def best_c(clipped) -> float:
    """The c at which the bound rises least often, over all runs."""
    return float((changes(clipped.bound) > EXACT).mean(("run", *CELLS)).idxmin("update_noise"))


def plot_truncations(ax, dataset):
    """Every truncation of every run: the change of the bound, and that of the risk."""
    clipped = parts.part(dataset, "clipped")
    bound = changes(clipped.bound.sel(update_noise=best_c(clipped)))
    risk, layers = changes(clipped.risk), clipped.layer.values
    for layer, shade in zip(layers, shades(len(layers)), strict=True):
        cells = (values.sel(layer=layer).values.ravel() for values in (bound, risk))
        ax.plot(*cells, "o", color=shade, ms=2.5, mew=0)
        ax.text(0.15 * 4.0**layer / 4, -0.012, f"{layer}", color=shade, weight="bold", ha="center")
    ax.text(0.06, -0.012, "layer", ha="right")
    for axis, line in (("x", ax.axvline), ("y", ax.axhline)):
        line(0, color="grey", lw=0.8)
        getattr(ax, f"set_{axis}scale")("symlog", linthresh=2e-4, linscale=0.4)
        getattr(ax, f"set_{axis}ticks")(list(TICKS), list(TICKS.values()))
    ax.set(xlabel="change of the bound", ylabel="change of the risk")
    ax.set(xlim=(-0.1, 40), ylim=(-0.02, 200), title="Clipping mostly raises bound and risk")


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    clipped, truncations = parts.part(dataset, "clipped"), claims.numbers(dataset).clipped
    equal, rises = (float(samples[id].mean()) for id in ("ranks_at_equal_n", "bound_falls"))
    falls, luck = (float((truncations.risk_change(edit) < 0).mean()) for edit in claims.SIDES)
    return (
        "A2's bound does not rank generalisation gaps where n is the same: their rank correlation "
        f"is {equal:.2f}. Clipping a layer of a trained stack raises the bound in {rises:.0%} of "
        f"cases. It lowers the risk in {falls:.0%}; random edits of the same size do in "
        f"{luck:.0%}. Large marks in a have more label noise. Panel b takes the bound's noise c = "
        f"{best_c(clipped):g}, at which it rises least often. "
        + quality(clipped, clipped.over_ridge, 1)
    )
