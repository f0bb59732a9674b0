"""The bound, the risk and the gap of stacks whose layers keep fewer and fewer ranks."""

import numpy as np

from experiments.clipping.clipping_and_bound import claims
from experiments.clipping.clipping_and_bound.claims import EXACT, agreements, changes
from experiments.clipping.clipping_and_bound.rank_maps import LEAST, colour_bar, rank_map
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shades
from experiments.clipping.transformers import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

JUDGED = (  # from the top: shares, correlations, rises
    *("bound_falls", "risk_falls_with_it", "least_when_dropped", "gap_falls_when_dropped"),
    *("ranks_risks", "descent_bound", "ranks_gaps", "sum_ranks_gaps"),
    *("gap_least_when_dropped", "chosen_by_bound"),
)
TICKS = (-0.01, -0.001, 0, 0.001, 0.01, 0.1, 1, 10)  # of changes
LINEAR = 2e-4  # below it the scale of changes is linear


def plot(dataset):
    maps = maps_of(dataset)
    figure, axes = style.stacked(6.75, (3.3, 2.6), ((1.35, 1), (1, 1, 1)))
    plot_truncations(axes[0], dataset, maps)
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-0.8, 1), JUDGED)
    axes[1].set(xlabel="share, correlation ρ or rise", title="what is judged")
    for ax, name in zip(axes[2:], ("bound", "risk", "gap"), strict=True):
        image = rank_map(ax, maps[name], names=ax is axes[2])
        ax.set_title(f"{name} / unclipped")
    colour_bar(figure, image, axes[2:])
    return figure


def appendix(dataset):
    """The two sums of norms, and how much depends on c."""
    maps = maps_of(dataset)
    figure, axes = style.stacked(6.75, (2.7,), ((1, 1, 1),), first="f")
    for ax, name in zip(axes, ("Σ|G|²", "Σ UB"), strict=False):
        image = rank_map(ax, maps[name], names=ax is axes[0])
        ax.set_title(f"{name} / unclipped")
    colour_bar(figure, image, axes[:2])
    plot_over_c(axes[2], dataset)
    return figure


def best_c(dataset) -> float:
    """The c at which the bound rises least often, over all runs."""
    rises = changes(dataset.bound) > EXACT
    return float(rises.mean(("run", "module", "layer", "rank")).idxmin("update_noise"))


def maps_of(dataset):  # -> {name: (run, module, layer, rank)}
    return {
        "bound": dataset.bound.sel(update_noise=best_c(dataset)),
        "risk": dataset.risk,
        "gap": dataset.gap,
        "Σ|G|²": dataset["sum"],
        "Σ UB": dataset.upper,
    }


def plot_truncations(ax, dataset, maps):
    """Every truncation of every run: the change of the bound, and that of the risk."""
    bound, risk = changes(maps["bound"]), changes(maps["risk"])
    layers = dataset.layer.values
    for i, (layer, shade) in enumerate(zip(layers, shades(len(layers)), strict=True)):
        cells = (values.sel(layer=layer).values.ravel() for values in (bound, risk))
        ax.plot(*cells, "o", color=shade, ms=2.5, mew=0)
        ax.text(0.15 * 4**i, -2e-3, f"{layer}", color=shade, weight="bold", ha="center")
    ax.text(0.06, -2e-3, "layer", ha="right")
    ax.axvline(0, color="grey", lw=0.8)
    ax.axhline(0, color="grey", lw=0.8)
    falls, lower = bound < -EXACT, risk < 0
    for x, y, words, share in (
        (-0.08, 130, "bound falls,\nrisk rises", falls & ~lower),
        (-0.08, -6e-3, "both fall", falls & lower),
        (1e-4, 130, "bound rises", bound > EXACT),
    ):
        text = f"{words}: {float(share.mean()):.0%}"
        ax.text(x, y, text, va="top" if y > 0 else "bottom")
    labels = [f"{100 * tick:+g}%".replace("-", "\u2212") if tick else "0" for tick in TICKS]
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=0.4)
    ax.set_yscale("symlog", linthresh=LINEAR, linscale=0.4)
    ax.set_xticks(TICKS, [label if i % 2 == 0 else "" for i, label in enumerate(labels)])
    ax.set_yticks(TICKS, labels)
    ax.set(xlim=(-0.1, 40), ylim=(-0.008, 200))
    ax.set(xlabel="change of the bound", ylabel="change of the risk")
    ax.set_title("each truncation of each stack")


def plot_over_c(ax, dataset):
    """How the correlations and the share of rises depend on the free c."""
    c = dataset.update_noise.values
    rises = (changes(dataset.bound) > EXACT).mean(("module", "layer", "rank"))
    series = {"bound rises, share": rises.transpose("run", "update_noise").values}
    for name in ("risk", "gap"):
        series[f"bound and {name}, ρ"] = agreements(dataset.bound, dataset[name]).mean((1, 2))
    for (label, runs), color in zip(series.items(), style.COLOURS, strict=False):
        style.mean_band(ax, c, runs, None, color, None)
        direct_label(ax, c[-1], runs.mean(0)[-1], label, color, (-2, 3))
    ax.axhline(claims.CORRELATED, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True)
    ax.set(xlabel="c of C = cI", ylim=(-0.5, 0.9))
    ax.set_title("over the free c")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    rises, falls = (float(samples[id].mean()) for id in ("bound_falls", "risk_falls_with_it"))
    n = max(spec_of(config).task.lengths)
    far = float(np.exp(np.log(dataset.over_ridge).mean()))
    return (
        f"Clipping a layer of a trained stack raises the bound in {rises:.0%} of cases at the best "
        f"choice of its free c, and where it lowers the bound, it lowers the risk in {falls:.0%}. "
        f"a, c: c = {best_c(dataset):g}, at which the bound rises least often. b: "
        f"{judged_panel.KEY}; c is the one that suits each row best on the other runs; ρ: rank "
        f"correlation over ranks kept. c to e: medians, written where they are {LEAST:.0%} or more "
        f"from 1. Appendix: f, g: the same for two sums of norms; h: mean and {level()} interval "
        f"over c; dashes: the bound for ρ. {dataset.sizes['run']} trained stacks "
        f"({left_out(dataset)} diverged and left out), excess risk {far:.3g} times ridge's; "
        f"n = {n}; losses clipped at {config.largest_loss:g}; C = cI is assumed: "
        f"the weights, from pretraining, have no noise of their own."
    )
