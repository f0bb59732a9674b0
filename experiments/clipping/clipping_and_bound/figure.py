"""The bound, the risk and the gap of stacks whose layers keep fewer and fewer ranks."""

import numpy as np

from experiments.clipping.clipping_and_bound.claims import agreement, samples
from experiments.clipping.clipping_and_bound.config import MEASURED, MODULES
from experiments.clipping.diverged_runs import left_out
from lsa_lab import results
from lsa_lab.harness import style


def columns(dataset):  # -> {title: (prefix of the variables, layer)}
    last = results.config_of(dataset).depth
    return {
        "trained, layer 1": ("", 1),
        f"trained, layer {last}": ("", last),
        "descent, layer 1": ("descent_", 1),
    }


def positive(dataset, name, module, layer):  # -> [R, ranks]
    """What has a logarithm; NaN where a gap is not positive."""
    values = dataset[name].sel(module=module, layer=layer).values
    return np.where(values > 0, values, np.nan)


def plot(dataset):
    figure, axes = style.figure(9.0, 4.8, (2, 3))
    ranks = dataset["rank"].values
    for i, (title, (prefix, layer)) in enumerate(columns(dataset).items()):
        for j, module in enumerate(MODULES):
            ax = axes[3 * j + i]
            for k, (name, label) in enumerate(MEASURED.items()):
                values = positive(dataset, prefix + name, module, layer)
                x, look = ranks + 0.06 * (k - 2), (style.COLOURS[k], style.MARKERS[k])
                style.band(ax, x, values / values[:, :1], label, *look)
            ax.axhline(1, color="grey", lw=0.8, ls="--")
            style.log_axes(ax, y=ax.get_ylim()[1] > 10)
            ax.set(xlabel="rank kept (0: dropped)", ylabel="of the unclipped", xticks=ranks)
            ax.invert_xaxis()
            ax.set_title(f"{module}, {title}")
    axes[5].legend(loc="upper left")
    return figure


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    rises, falls = (float(judged[id].mean()) for id in ("bound_falls", "risk_falls_with_it"))
    risk, gap = (agreement(dataset.bound, dataset[name]).mean((0, 1)) for name in ("risk", "gap"))
    panels = [
        positive(dataset, prefix + name, module, layer)
        for prefix, layer in columns(dataset).values()
        for module in MODULES
        for name in MEASURED
    ]
    lost = sum(style.missing(values / values[:, :1]) for values in panels)
    return (
        f"Clipping a layer of a trained stack raises the bound in {rises:.0%} of cases, and where "
        f"it lowers the bound, it lowers the risk in {falls:.0%}. "
        f"Clipping more, from left to right. The rank correlation of the bound with the risk is "
        f"{risk[0]:.2f} where trained stacks are clipped in layer 1 and {risk[-1]:.2f} in layer "
        f"{config.depth}; with the generalisation gap {gap[0]:.2f} and {gap[-1]:.2f}. Losses are "
        f"clipped at {config.largest_loss:g}; C = cI with c = {config.update_noise:g}, which is "
        f"free: implicit descent has no noise of its own, n = {config.n} is small and the weights "
        f"come from pretraining. Median of {dataset.sizes['run']} trained stacks "
        f"({left_out(dataset)} diverged and left out) or {dataset.sizes['prompts']} sets of "
        f"prompts and the middle 80 %; {lost} left out as not positive."
    )
