"""Risks of trained layers on the closed form, their excess, the learned matrix, what is judged."""

import itertools

from experiments.one_layer.one_layer_optimum import claims
from experiments.one_layer.one_layer_optimum.config import TASKS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

COLOURS = style.COLOURS[3:]  # of tasks: with these markers no method has them


def plot(dataset):
    from matplotlib.ticker import LogLocator

    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 5.4, (2, 2))
    colors = zip(TASKS, COLOURS, strict=True)
    markers = zip(config.heads, style.MARKERS, strict=False)
    cells = list(itertools.product(colors, markers))
    for i, ((task, color), (heads, marker)) in enumerate(cells):
        runs = dataset.sel(task=task, heads=heads).transpose("run", "length", "n")
        length = dataset.length.values
        beside = length * 1.1 ** (i - (len(cells) - 1) / 2)  # not on top of each other
        if heads == config.heads[0]:
            style.line(axes[0], dataset.n, runs.theory, task, color)
        look = {"fmt": marker, "color": color, "capsize": 2}
        style.mean_points(axes[0], length, runs.risk, **look)
        style.mean_points(axes[1], beside, 100 * runs.excess, **look)
        style.mean_points(axes[2], beside, 1 - runs.cosine, **look)
    for heads, marker in zip(config.heads, style.MARKERS, strict=False):
        label = f"{heads} head" + "s" * (heads > 1)
        axes[2].plot([], [], marker, color="grey", label=label)
    bounds = {statement.id: statement.bounds for statement in claims.statements(config)}
    for ax, bound in ((axes[1], 100 * bounds["risk"][1]), (axes[2], 1 - bounds["matrix"][0])):
        ax.axhline(bound, color="grey", lw=0.8, ls="--")
        direct_label(ax, config.lengths[-1], bound, "bound", "dimgrey", (-2, -2))
    axes[1].set_ylim(bottom=min(0, *axes[1].get_ylim()))
    names = ("risk", "excess over the optimum, %", "1 - cosine with A*")
    titles = ("theory and trained layers", "trained layers, paired", "the learned matrix")
    for ax, name, title in zip(axes, names, titles, strict=False):
        style.log_axes(ax, x=True, y=ax is not axes[1], ticks=dataset.length.values)
        ax.set(xlabel="demonstrations n", ylabel=name)
        ax.set_title(title)
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].legend()
    axes[2].legend(loc="lower left")
    plot_judged(axes[3], dataset)
    return figure


def plot_judged(ax, dataset):
    judged_panel.rows(ax, *evidence(claims, dataset), (-0.025, 0.025))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set(xlabel="share of the risk")
    ax.set_title("what is judged, at the worst place")


def caption(dataset) -> str:
    config, (_, worst) = results.config_of(dataset), evidence(claims, dataset)
    missing = sum(style.missing(dataset[name]) for name in ("risk", "excess", "cosine"))
    return (
        f"A trained layer's risk is at most {100 * worst['risk'].mean():.2g} % above theory's "
        f"optimum, and its matrix has cosine {worst['matrix'].mean():.4f} with the optimal one. "
        f"Means, at the worst task and length. Lines: the optimum in closed "
        f"form; colours are tasks. Points: mean of {config.runs} trained layers with its "
        f"{level()} interval; {missing} left out as not finite. d: {judged_panel.KEY}. "
        f"d = {config.d}."
    )
