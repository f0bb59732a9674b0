"""The figure of `why_a_rate`, drawn from its result alone."""

import numpy as np

from experiments.clipping.why_a_rate.config import CONDITIONS, PREDICTORS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import (
    MATRICES,
    best_rates,
    rank_correlations,
    regrets,
)
from lsa_lab import results
from lsa_lab.harness import style


def draw(ax, places, samples, label, i, of):
    """The i-th of several bands side by side; how many of its numbers are not finite."""
    x = np.asarray(places) + 0.14 * (i - (of - 1) / 2)
    return style.band(ax, x, samples, label, style.COLOURS[i], style.MARKERS[i])


def over_cells(values):
    """The geometric mean over layers and modules."""
    return np.exp(np.log(values).mean(("layer", "module")))


def risk_axis(ax):
    from matplotlib.ticker import LogLocator

    ax.set(ylabel="risk / unclipped")
    style.log_axes(ax, y=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")


def plot_harm(one, whole, dataset):
    """The risk after one matrix is clipped, and after a whole layer is dropped."""
    test = 1 + dataset.change.sel(prompts="test")
    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks, lost = dataset.kept.values[first], 0
    for i, name in enumerate(CONDITIONS):
        there = over_cells(test.sel(condition=name, module=list(MATRICES)).isel(rate=first))
        lost += draw(one, range(len(ranks)), there.transpose("run", "rate"), name, i, 4)
        layers = test.sel(condition=name, module="layer").isel(rate=-1).transpose("run", "layer")
        lost += draw(whole, dataset.layer.values, layers, name, i, 4)
    one.set(xlabel="rank kept of one matrix (0: dropped)", title="clipping one matrix")
    one.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    whole.set(xlabel="layer dropped", xticks=dataset.layer.values, title="dropping a whole layer")
    risk_axis(one)
    risk_axis(whole)
    one.legend()
    return lost


def plot_best(ax, dataset, settings):
    """The gain by the best edit, on the prompts that chose it and on others."""
    there, lost = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1)), 0
    hoped = -there.min(("layer", "module", "rate"))
    both = {"on the prompts that chose": hoped, "on others": dataset.gain.sel(search="of all")}
    for i, (name, values) in enumerate(both.items()):
        values = values.transpose("run", "condition")
        lost += draw(ax, range(len(CONDITIONS)), values, name, i, 2)
    ax.axhline(settings.worthwhile, color="grey", lw=0.8, ls="--")
    ax.set_xticks(range(len(CONDITIONS)), CONDITIONS, rotation=20)
    ax.set(ylabel="gain / risk", title="the best edit of all")
    ax.legend()
    return lost


def plot_rivals(ax, dataset, settings):
    """Clipping beside other edits that keep equally many numbers."""
    test, lost = 1 + dataset.change.sel(prompts="test"), 0
    rivals = {"clip": test.sel(rate=list(dataset.rival_rate.values))}
    rivals |= {way: 1 + dataset.rival.sel(way=way) for way in RIVALS}
    for i, (way, values) in enumerate(rivals.items()):
        values = over_cells(values).mean("condition").transpose("run", ...)
        lost += draw(ax, range(len(dataset.rival_rate)), values, way, i, 3)
    ax.set_xticks(range(len(dataset.rival_rate)), [f"{x:g}" for x in settings.rival_rates])
    ax.set(xlabel="rate", title="rivals of equal size")
    risk_axis(ax)
    ax.legend()
    return lost


def plot_rules(ranks, regret, dataset, settings):
    """The ranks that the rules predict beside the searched ones, and what they cost."""
    own = dataset.kept.isel(rate=best_rates(dataset)).mean(("layer", "module")).values
    rules = dataset.predicted.mean(("layer", "matrix"))
    places, extra, lost = range(len(PREDICTORS) + 1), regrets(dataset), 0
    for i, name in enumerate(CONDITIONS):
        predicted = rules.sel(condition=name).transpose("run", "predictor").values
        both = np.concatenate([own[i][:, None], predicted], axis=1)
        lost += draw(ranks, places, both, name, i, 4)
        lost += draw(regret, places, extra[i], name, i, 4)
    ranks.set_xticks(places, ["searched", *PREDICTORS], rotation=20)
    ranks.set(ylabel="rank, mean over matrices", ylim=(0, None))
    ranks.set_title("best ranks, predicted ranks")
    regret.axhline(settings.regret, color="grey", lw=0.8, ls="--")
    regret.set_xticks(places, [*PREDICTORS, "not cut"], rotation=20)
    regret.set(ylabel="extra risk / risk", title="regret of the predicted rank")
    regret.set_yscale("symlog", linthresh=settings.regret)
    return lost


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 5.6, (2, 3))
    lost = plot_harm(axes[0], axes[3], dataset)
    lost += plot_best(axes[1], dataset, settings)
    lost += plot_rivals(axes[2], dataset, settings)
    lost += plot_rules(axes[4], axes[5], dataset, settings)
    correlations = rank_correlations(dataset).mean((0, 1))
    listed = ", ".join(f"{name} {x:.2f}" for name, x in zip(PREDICTORS, correlations, strict=True))
    diverged = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"b: layer, module and rate are chosen on {settings.prompts} prompts and judged on "
        f"{settings.more_prompts} others. Elsewhere every edit stands for itself. Rank "
        f"correlation of predicted and searched rank: {listed}. Geometric means over layers and "
        f"modules; median of {settings.runs} trained models ({diverged} diverged), each with its "
        f"own prompts, and the middle 80 %; {lost} left out as not finite. "
        f"Dashes: what counts as a gain, and as a regret.",
    )
    return drawn
