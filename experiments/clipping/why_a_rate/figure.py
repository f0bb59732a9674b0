"""What clipping, its rivals and the rules for a rate do to the risk, and what is judged of it."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.why_a_rate.claims import samples
from experiments.clipping.why_a_rate.config import CONDITIONS, statements
from experiments.clipping.why_a_rate.rate_rules import MATRICES, PREDICTORS
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

GAINS = {f"gain_{name.replace('-', '_')}": name for name in CONDITIONS}
GAINS |= {"single_module": "W_K alone", "same_rate": "loss by the edit\nof matched"}
EDITS = {
    "dropping_is_harmless": "layer dropped:\n|change|",
    "clip_or_drop": "layer dropped",
    "clip_or_prune": "pruned",
    "clip_or_project": "projected",
}
KEYS = {name: name.replace(" ", "_") for name in PREDICTORS}
REGRETS = {f"{key}_regret": name for name, key in KEYS.items()} | {"no_search_regret": "not cut"}
AGREEMENT = {f"{key}_ranks": name for name, key in KEYS.items()}
AGREEMENT |= {"search_repeats": "a second search", "rate_varies": "share of other\nbest ranks"}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 8.0, (3, 2))
    plot_best(axes[0], dataset, config)
    plot_matrices(axes[2], dataset)
    panels = (
        (axes[1], GAINS, (-0.06, 0.06), None, "gain / risk", "judged gains"),
        (axes[3], EDITS, (-0.3, 6), 0.1, "log (risk / clipped), or change", "judged edits"),
        (axes[4], REGRETS, (-0.02, 1), 0.01, "extra risk / risk", "judged regrets of rules"),
        (axes[5], AGREEMENT, (-0.2, 1), None, "rank correlation, or share", "judged agreement"),
    )
    judged = samples(dataset)
    for ax, labels, span, linear, words, title in panels:
        if linear is not None:
            ax.set_xscale("symlog", linthresh=linear)
        judged_panel.rows(ax, statements(config), judged, labels, span)
        ax.set(xlabel=words, title=title)
    return figure


def side_by_side(count, places):
    """Places of several series, a little apart."""
    return [np.asarray(places) + 0.14 * (i - (count - 1) / 2) for i in range(count)]


def plot_best(ax, dataset, config):
    """The gain by the best edit, on the prompts that chose it and on others."""
    change = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1))
    hoped = -change.min(("layer", "module", "rate"))
    both = {"on the prompts that chose": hoped, "on others": dataset.gain.sel(search="of all")}
    places = side_by_side(len(both), range(len(CONDITIONS)))
    for i, (label, gains) in enumerate(both.items()):
        look = dict(fmt=style.MARKERS[i], color=style.COLOURS[i], capsize=2)
        style.mean_points(ax, places[i], gains.transpose("run", "condition"), label, **look)
    ax.axhline(config.worthwhile, color="grey", lw=0.8, ls="--")
    ax.set_xticks(range(len(CONDITIONS)), list(CONDITIONS), rotation=20)
    ax.set(ylabel="gain / risk", title="the best edit of all")
    ax.set_ylim(top=1.5 * ax.get_ylim()[1])  # room for the legend
    ax.legend()


def plot_matrices(ax, dataset):
    """The risk after one matrix is clipped, a geometric mean over layers and matrices."""
    from matplotlib.ticker import LogLocator

    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks = dataset.kept.values[first]
    logs = np.log1p(dataset.change.sel(prompts="test", module=list(MATRICES)).isel(rate=first))
    risks = np.exp(logs.mean(("layer", "module")))
    places = side_by_side(len(CONDITIONS), range(len(ranks)))
    for i, name in enumerate(CONDITIONS):
        look = dict(label=name, color=style.COLOURS[i], marker=style.MARKERS[i])
        style.band(ax, places[i], risks.sel(condition=name).transpose("run", "rate"), **look)
    ax.set(xlabel="rank kept of one matrix (0: dropped)", title="clipping one matrix")
    ax.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    ax.set(ylabel="risk / unclipped")
    style.log_axes(ax, y=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend()


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    gains = {name: judged[id].mean() for id, name in GAINS.items() if name in CONDITIONS}
    least, most = min(gains, key=gains.get), max(gains, key=gains.get)
    rules = [judged[f"{key}_ranks"].mean() for key in KEYS.values()]
    lost = sum(style.missing(dataset[name]) for name in ("change", "gain", "rival", "predicted"))
    far = np.exp(np.log(dataset.risk.sel(prompts="test") / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(far.sel(condition=name)):.3g} {name}" for name in CONDITIONS)
    return (
        f"On unseen prompts a searched edit gains our models {gains[least]:+.1%} ({least}) to "
        f"{gains[most]:+.1%} ({most}); ranks that spectra predict correlate by {min(rules):.2f} to "
        f"{max(rules):.2f} with searched ones. "
        f"A second search agrees with the first by {judged['search_repeats'].mean():.2f}, and no "
        f"cut at all costs {judged['no_search_regret'].mean():+.1%} beside the search. Our models "
        f"are far from the best predictor: their risk is that of ridge regression times {ratios}. "
        f"a: layer, module and rate are chosen on {config.prompts} prompts and judged on "
        f"{config.more_prompts} others, means and 95 % intervals; dashes: a gain that counts. c: "
        f"median over runs and the middle 80 %. d: risks beside that after clipping, with whole "
        f"layers dropped, and with single matrices pruned by magnitude or projected to equally "
        f"many numbers. b, d to f: {judged_panel.KEY}. "
        f"{dataset.sizes['run']} trained models "
        f"({left_out(dataset)} diverged and left out), each with its own prompts; {lost} numbers "
        f"left out as not finite."
    )
