"""A2's bound beside the gap over the whole grid and along its axes, and what clipping does to the
bound and the risk."""

import numpy as np

from experiments.clipping.bound_and_gap import claims
from experiments.clipping.bound_and_gap.claims import CELLS, EXACT, changes, least_bounds
from experiments.clipping.bound_and_gap.config import GRID
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shades
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

LEAST, SPREAD, GAP = style.BLACK, "0.55", style.METHOD["descent"]["color"]
WORDS = {"noise": "noise", "shots": "demonstrations n", "depth": "layers"}
NAMES = {"noise": "noise {:g}", "shots": "n = {:g}", "depth": "{:g} layers"}
MARGINS = ("above", "above_with_noise", "says_something")
TICKS = {-0.01: "\u22121%", 0: "0", 0.01: "+1%", 1: "+100%", 100: "+10000%"}  # of changes


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.9, 2.5), ((1, 1), (1, 1, 1)))
    main = parts.part(dataset)
    whole_grid(axes[0], main)
    plot_truncations(axes[1], parts.part(dataset, "clipped"))
    for ax, axis in zip(axes[2:], ("shots", "noise", "depth"), strict=True):
        axis_curves(ax, main, axis)
    return figure


def appendix(dataset):
    """What is judged."""
    figure, axes = style.stacked(6.75, (1.1, 2.8), ((1,), (1,)), first="f")
    statements, samples = evidence(claims, dataset)
    judged_panel.rows(axes[0], statements, samples, (-60, 15), MARGINS)
    axes[0].set(xlabel="margin, in units of the loss")
    others = [id for id in samples if id not in MARGINS]
    judged_panel.rows(axes[1], statements, samples, (-0.5, 1), others)
    axes[1].set(xlabel="rank correlation ρ, share or rise")
    return figure


def whole_grid(ax, dataset):
    """Every place of the grid: n by shade, label noise by size."""
    least, gaps = least_bounds(dataset).mean("group"), dataset.gap.mean("group")
    sizes = np.linspace(3, 6, dataset.sizes["noise"])
    style.log_axes(ax, x=True)
    left = 0.5 * float(gaps.where(gaps > 0).min())
    for i, (n, shade) in enumerate(
        zip(dataset.shots.values, shades(len(dataset.shots)), strict=True)
    ):
        for j, size in enumerate(sizes):
            x, y = (values.isel(shots=i, noise=j).values for values in (gaps, least))
            ax.plot(x[x > 0], y[x > 0], "o", color=shade, ms=size, mec="white", mew=0.4)
            for value, height in zip(x[x <= 0], y[x <= 0], strict=True):
                ax.plot(left, height, "<", color=shade, mfc="white", ms=5, clip_on=False)
                direct_label(ax, left, height, f"{value:.1g}".replace("-", "\u2212"), shade, (5, 0))
        ax.plot([], [], "o", color=shade, label=f"n = {n:g}")
    ax.legend(loc="upper left")
    largest = results.config_of(dataset).largest_loss
    ax.axhline(largest, color="grey", lw=0.8, ls="--")
    direct_label(ax, float(gaps.max()), largest, f"losses end at {largest:g}", "dimgrey", (-2, 2))
    ax.set(xlabel="gap, mean over tasks", ylabel="least bound over c", xlim=(left, None))
    ax.set(title="bound and gap, whole grid", ylim=(0, None))


def axis_curves(ax, dataset, axis):
    """What one axis shows at the middle of the others; marks of bounds beside each other."""
    x, fixed = dataset[axis].values, [name for name in GRID if name != axis]
    middle = {name: dataset.sizes[name] // 2 for name in fixed}
    style.log_axes(ax, x=axis == "shots", y=True, ticks=x)
    series = {
        "least bound": (least_bounds(dataset), LEAST, "o", -1, 9),
        "bound, c = spread": (dataset.spread_bound, SPREAD, "s", 1, -14),
        "gap": (dataset.gap, GAP, "^", 0, 12),
    }
    for name, (values, color, marker, aside, above) in series.items():
        runs = np.maximum(values.isel(middle).transpose("group", axis).values, 1e-9)
        beside = x * 1.06**aside if axis == "shots" else x + 0.02 * aside * (x[-1] - x[0])
        style.band(ax, beside, runs, None, color, marker)
        if axis == "shots":
            near = (len(x) - 1) // 2
            direct_label(ax, x[near], np.median(runs[:, near]), name, color, (0, above))
    ax.axhline(results.config_of(dataset).largest_loss, color="grey", lw=0.8, ls="--")
    ax.set(xlabel=WORDS[axis], xticks=x, ylim=(3e-3, 100))
    at = dataset.isel(middle)
    ax.set_title(", ".join(NAMES[name].format(at[name].item()) for name in fixed))
    if axis == "shots":
        ax.set_ylabel("bound, gap")


def best_c(clipped) -> float:
    """The c at which the bound rises least often, over all runs."""
    return float((changes(clipped.bound) > EXACT).mean(("run", *CELLS)).idxmin("update_noise"))


def plot_truncations(ax, clipped):
    """Every truncation of every run: the change of the bound, and that of the risk."""
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
    ax.set(title="truncations, trained stacks", xlim=(-0.1, 40), ylim=(-0.02, 200))


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    clipped = parts.part(dataset, "clipped")
    equal, rises, falls = (
        float(samples[id].mean())
        for id in ("ranks_at_equal_n", "bound_falls", "risk_falls_with_it")
    )
    far = float(np.exp(np.log(clipped.over_ridge).mean()))
    return (
        f"At equal n A2's bound and the generalisation gap have a rank correlation of {equal:.2f}. "
        f"Clipping a layer of a trained stack raises the bound in {rises:.0%} of cases. Where the "
        f"bound falls, the risk falls in {falls:.0%}. "
        f"In a larger marks have more label noise. b takes c = {best_c(clipped):g}, at which the "
        "bound rises least often. The theorem assumes "
        f"C = cI. The {clipped.sizes['run']} trained stacks ({left_out(clipped)} diverged) have "
        f"{far:.3g} times ridge's risk. "
    )
