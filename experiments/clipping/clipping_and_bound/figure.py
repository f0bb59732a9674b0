"""The bound, the risk and the gap of stacks whose layers keep fewer and fewer ranks."""

import numpy as np

from experiments.clipping.clipping_and_bound.claims import agreements, changes, samples
from experiments.clipping.clipping_and_bound.config import PLAIN, statements
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

JUDGED = {
    "ranks_risks": "bound, risk",
    "ranks_gaps": "bound, gap",
    "sum_ranks_gaps": "Σ|G|², gap",
    "descent_bound": "bound, risk (descent)",
}
SHARES = {
    "bound_falls": "the bound rises",
    "risk_falls_with_it": "of lower bounds,\nthe risk falls",
    "least_when_dropped": "least bound is\nnot the drop",
    "gap_falls_when_dropped": "the drop has the\nsmaller gap",
}


def columns(dataset):  # -> {title: (module, layer)}
    last = results.config_of(dataset).depth
    return {
        "w_kq, layer 1": ("w_kq", 1),
        "w_pv, layer 1": ("w_pv", 1),
        f"w_pv, layer {last}": ("w_pv", last),
    }


def curves(dataset, module, layer):  # -> {label: [R, ranks]}
    """Relative to the matrix whole; NaN where a gap is not positive and has no logarithm."""
    here = dataset.sel(module=module, layer=layer).transpose("run", ...)
    at = here.bound.isel(update_noise=[0, -1]).transpose("update_noise", "run", "rank")
    rows = {f"bound, c = {c:g}": row.values for c, row in zip(at.update_noise.values, at)}  # noqa: B905
    rows |= {label: here[name].values for name, label in PLAIN.items()}
    positive = {label: np.where(values > 0, values, np.nan) for label, values in rows.items()}
    return {label: values / values[:, :1] for label, values in positive.items()}


def plot(dataset):
    figure, axes = style.figure(6.75, 7.2, (3, 2))
    ranks = dataset["rank"].values
    for ax, (title, place) in zip(axes, columns(dataset).items(), strict=False):
        for k, (label, values) in enumerate(curves(dataset, *place).items()):
            x = ranks + 0.08 * (k - 2.5)
            style.band(ax, x, values, label, style.COLOURS[k], style.MARKERS[k])
        ax.axhline(1, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=ax.get_ylim()[1] > 10)
        ax.set(xlabel="rank kept (0: dropped)", ylabel="of the unclipped", xticks=ranks)
        ax.invert_xaxis()
        ax.set_title(title)
    handles, labels = axes[2].get_legend_handles_labels()
    axes[2].add_artist(axes[2].legend(handles[:3], labels[:3], loc="upper left"))
    axes[2].legend(handles[3:], labels[3:], loc="lower left")
    over_c(axes[3], dataset)
    rows = statements(results.config_of(dataset)), samples(dataset)
    judged_panel.rows(axes[4], *rows, JUDGED, (-1, 1))
    axes[4].set(xlabel="rank correlation over ranks kept")
    judged_panel.rows(axes[5], *rows, SHARES, (0, 1))
    axes[5].set(xlabel="share")
    return figure


def over_c(ax, dataset):
    """How the correlations and the share of rises depend on the free c."""
    c, config = dataset.update_noise.values, results.config_of(dataset)
    for i, (name, label) in enumerate((("risk", "with risk"), ("gap", "with gap"))):
        rows = agreements(dataset.bound, dataset[name]).mean((1, 2))
        style.mean_band(ax, c, rows, label, style.COLOURS[2 + i], None)
    rises = (changes(dataset.bound) > config.exact).mean(("module", "layer", "rank"))
    rises = rises.transpose("run", "update_noise").values
    style.mean_band(ax, c, rises, "share of rises", style.COLOURS[0], None)
    ax.axhline(config.rank_correlation, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True)
    ax.set(xlabel="c, chosen freely", ylabel="rank correlation, share", ylim=(-1, 1))
    ax.legend(loc="lower right")


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    rises, falls = (float(judged[id].mean()) for id in ("bound_falls", "risk_falls_with_it"))
    lost = sum(
        style.missing(values)
        for place in columns(dataset).values()
        for values in curves(dataset, *place).values()
    )
    return (
        f"Clipping a layer of a trained stack raises the bound in {rises:.0%} of cases at the best "
        f"choice of its free c, and where it lowers the bound, it lowers the risk in {falls:.0%}. "
        f"a to c: clipping more, from left to right; median of {dataset.sizes['run']} trained "
        f"stacks ({left_out(dataset)} diverged and left out) and the middle 80 %; {lost} left out "
        f"as not positive. d: mean and 95 % interval over c of C = cI, which is free: these stacks "
        f"have no noise of their own. e, f: {judged_panel.KEY}; c is the one that suits each row "
        f"best on the other runs. Losses are clipped at "
        f"{config.largest_loss:g}. The stacks' excess risk is {over_ridge(dataset):.3g} times that "
        f"of ridge regression (geometric mean). n = {config.n} is small, and the weights come from "
        f"pretraining."
    )


def over_ridge(dataset) -> float:
    return float(np.exp(np.log(dataset.over_ridge).mean()))
