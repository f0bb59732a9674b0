"""What clipping, its rivals and the rules for a rate do to the risk, in four conditions."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.why_a_rate.claims import samples
from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import (
    MATRICES,
    PREDICTORS,
    best_rates,
    rank_correlations,
    regrets,
)
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 5.0, (2, 3))
    plot_matrices(axes[0], dataset)
    plot_best(axes[1], dataset, config)
    plot_rivals(axes[2], dataset, config)
    plot_layers(axes[3], dataset)
    plot_ranks(axes[4], dataset)
    plot_regrets(axes[5], dataset, config)
    return figure


def side_by_side(ax, places, series):
    """Bands {label: runs [R, places]} of several colours, a little apart."""
    for i, (label, runs) in enumerate(series.items()):
        x = np.asarray(places) + 0.14 * (i - (len(series) - 1) / 2)
        style.band(ax, x, runs, label, style.COLOURS[i], style.MARKERS[i])


def over_cells(values):
    """The geometric mean over layers and modules."""
    return np.exp(np.log(values).mean(("layer", "module")))


def risk_axis(ax):
    from matplotlib.ticker import LogLocator

    ax.set(ylabel="risk / unclipped")
    style.log_axes(ax, y=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")


def plot_matrices(ax, dataset):
    """The risk after one matrix is clipped."""
    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks = dataset.kept.values[first]
    risks = 1 + dataset.change.sel(prompts="test", module=list(MATRICES)).isel(rate=first)
    risks = over_cells(risks).transpose("condition", "run", "rate")
    side_by_side(ax, range(len(ranks)), dict(zip(CONDITIONS, risks, strict=True)))
    ax.set(xlabel="rank kept of one matrix (0: dropped)", title="clipping one matrix")
    ax.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    risk_axis(ax)
    ax.legend()


def plot_layers(ax, dataset):
    """The risk after a whole layer is dropped."""
    risks = 1 + dataset.change.sel(prompts="test", module="layer").isel(rate=-1)
    risks, layers = risks.transpose("condition", "run", "layer"), dataset.layer.values
    side_by_side(ax, layers, dict(zip(CONDITIONS, risks, strict=True)))
    ax.set(xlabel="layer dropped", xticks=layers, title="dropping a whole layer")
    risk_axis(ax)


def plot_best(ax, dataset, config):
    """The gain by the best edit, on the prompts that chose it and on others."""
    change = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1))
    hoped = -change.min(("layer", "module", "rate"))
    both = {"on the prompts that chose": hoped, "on others": dataset.gain.sel(search="of all")}
    runs = {label: gains.transpose("run", "condition") for label, gains in both.items()}
    side_by_side(ax, range(len(CONDITIONS)), runs)
    ax.axhline(config.worthwhile, color="grey", lw=0.8, ls="--")
    ax.set_xticks(range(len(CONDITIONS)), list(CONDITIONS), rotation=20)
    ax.set(ylabel="gain / risk", title="the best edit of all")
    ax.legend()


def plot_rivals(ax, dataset, config):
    """Clipping beside other edits that keep equally many numbers."""
    rates = list(dataset.rival_rate.values)
    edits = {"clip": dataset.change.sel(prompts="test", rate=rates)}
    edits |= {way: dataset.rival.sel(way=way) for way in RIVALS}
    risks = {way: over_cells(1 + change).mean("condition") for way, change in edits.items()}
    runs = {way: values.transpose("run", ...) for way, values in risks.items()}
    side_by_side(ax, range(len(rates)), runs)
    ax.set_xticks(range(len(rates)), [f"{rate:g}" for rate in config.rival_rates])
    ax.set(xlabel="rate", title="rivals of equal size")
    risk_axis(ax)
    ax.legend()


def plot_ranks(ax, dataset):
    """The ranks that the rules predict beside the searched ones."""
    searched = dataset.kept.isel(rate=best_rates(dataset)).mean(("layer", "module")).values
    rules = dataset.predicted.mean(("layer", "matrix"))
    rules = rules.transpose("condition", "run", "predictor").values
    both = np.concatenate([searched[:, :, None], rules], axis=2)
    side_by_side(ax, range(len(PREDICTORS) + 1), dict(zip(CONDITIONS, both, strict=True)))
    ax.set_xticks(range(len(PREDICTORS) + 1), ["searched", *PREDICTORS], rotation=20)
    ax.set(ylabel="rank, mean over matrices", ylim=(0, None))
    ax.set_title("best ranks, predicted ranks")


def plot_regrets(ax, dataset, config):
    """What the predicted ranks cost beside the searched ones."""
    places = range(len(PREDICTORS) + 1)
    side_by_side(ax, places, dict(zip(CONDITIONS, regrets(dataset), strict=True)))
    ax.axhline(config.regret, color="grey", lw=0.8, ls="--")
    ax.set_xticks(places, [*PREDICTORS, "not cut"], rotation=20)
    ax.set(ylabel="extra risk / risk", title="regret of the predicted rank")
    ax.set_yscale("symlog", linthresh=config.regret)


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    gains = {name: judged[f"gain_{name.replace('-', '_')}"].mean() for name in CONDITIONS}
    least, most = min(gains, key=gains.get), max(gains, key=gains.get)
    rules = dict(zip(PREDICTORS, rank_correlations(dataset).mean((0, 1)), strict=True))
    listed = ", ".join(f"{name} {correlation:.2f}" for name, correlation in rules.items())
    lost = sum(style.missing(dataset[name]) for name in ("change", "gain", "rival", "predicted"))
    return (
        f"On unseen prompts a searched edit gains {gains[least]:+.1%} ({least}) to "
        f"{gains[most]:+.1%} ({most}); ranks that spectra predict correlate by "
        f"{min(rules.values()):.2f} to {max(rules.values()):.2f} with searched ones. "
        f"b: layer, module and rate are chosen on {config.prompts} prompts and judged on "
        f"{config.more_prompts} others. Elsewhere every edit stands for itself. Rank "
        f"correlation of predicted and searched rank: {listed}. Geometric means over layers and "
        f"modules; median of {config.runs} trained models ({left_out(dataset)} diverged), each "
        f"with its own prompts, and the middle 80 %; {lost} numbers left out as not finite. "
        f"Dashes: what counts as a gain, and as a regret."
    )
