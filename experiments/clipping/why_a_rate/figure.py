"""What clipping, its rivals and the rules for a rate do to the risk, and what is judged of it."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.why_a_rate import claims
from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import MATRICES, PREDICTORS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

# The judged rows, from the top.
GAINS = ("gain_matched", "gain_under_trained", "gain_noisy", "gain_shifted")
GAINS += ("single_module", "same_rate")
AGREEMENT = ("gap_ranks", "stable_rank_ranks", "participation_ranks", "energy_ranks")
AGREEMENT += ("search_repeats", "rate_varies")
EDITS = ("dropping_is_harmless", "clip_or_drop", "clip_or_prune", "clip_or_project")
REGRETS = ("gap_regret", "stable_rank_regret", "participation_regret", "energy_regret")
REGRETS += ("no_search_regret",)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.5, 1.7), ((1, 1), (1, 1), (1,)))
    plot_matrices(axes[2], dataset)
    statements, samples = evidence(claims, dataset)
    extra = "(risk − searched) / unclipped risk"
    risks = "log(risk / that after clipping), or |change|"
    for ax, ids, span, linear, words, title in (
        (axes[0], GAINS, (-0.06, 0.09), None, "gain / risk", "gain by the best edit"),
        (axes[1], AGREEMENT, (-0.2, 1), None, "correlation, or share", "agreement on ranks"),
        (axes[3], EDITS, (-0.3, 6), 0.1, risks, "other edits"),
        (axes[4], REGRETS, (-0.02, 1), 0.01, extra, "ranks that spectra predict"),
    ):
        if linear is not None:
            ax.set_xscale("symlog", linthresh=linear)
        judged_panel.rows(ax, statements, samples, span, ids)
        ax.set(xlabel=words, title=title)
    plot_chosen_gains(axes[0], dataset)
    for i, ticks in ((0, (-0.05, 0, 0.05)), (3, (-0.1, 0, 0.1, 1)), (4, (-0.01, 0, 0.01, 0.1, 1))):
        axes[i].set_xticks(ticks, [f"{tick:g}".replace("-", "\u2212") for tick in ticks])
    return figure


def plot_chosen_gains(ax, dataset):
    """The gain by the best edit on the prompts that chose it, above the row of each condition."""
    change = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1))
    gains = -change.min(("layer", "module", "rate"))
    runs = gains.sel(condition=list(CONDITIONS)).transpose("run", "condition").values
    y, ends = np.arange(len(CONDITIONS)) - 0.25, style.mean_ends(runs)
    ax.plot(ends, [y, y], color="grey", lw=0.8)
    ax.plot(runs.mean(0), y, "s", color="grey")
    end = min(float(np.nanmax([runs.mean(0)[0], ends[1][0]])), max(ax.get_xlim()))
    direct_label(ax, end, y[0], "when chosen", "dimgrey", (4, 0))


def side_by_side(count, places):
    """Places of several series, a little apart."""
    return [np.asarray(places) + 0.14 * (i - (count - 1) / 2) for i in range(count)]


def plot_matrices(ax, dataset):
    """The risk after one matrix is clipped, a geometric mean over layers and matrices."""
    from matplotlib.ticker import LogLocator

    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks = dataset.kept.values[first]
    logs = np.log1p(dataset.change.sel(prompts="test", module=list(MATRICES)).isel(rate=first))
    risks = np.exp(logs.mean(("layer", "module"))).transpose(..., "rate")
    places = side_by_side(len(CONDITIONS), range(len(ranks)))
    for i, name in enumerate(CONDITIONS):
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i])
        style.band(ax, places[i], risks.sel(condition=name).transpose("run", "rate"), **look)
    ax.set(xlabel="rank kept (0: dropped)", title="one matrix clipped")
    ax.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    ax.set(ylabel="risk clipped / unclipped")
    style.log_axes(ax, y=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ends = {name: float(risks.sel(condition=name)[..., -1].median()) for name in CONDITIONS}
    end_labels(ax, ends, style.COLOURS)


def caption(dataset) -> str:
    config, searched = results.config_of(dataset), claims.numbers(dataset)
    _, samples = evidence(claims, dataset)
    gains = {name: float(searched.gain.sel(condition=name).mean()) for name in CONDITIONS}
    least, most = min(gains, key=gains.get), max(gains, key=gains.get)
    rules = [searched.correlations[name].mean() for name in PREDICTORS]
    lost = sum(style.missing(dataset[name]) for name in ("change", "gain", "rival", "predicted"))
    far = np.exp(np.log(dataset.risk.sel(prompts="test") / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(far.sel(condition=name)):.3g} {name}" for name in CONDITIONS)
    return (
        f"On unseen prompts a searched edit gains our models {gains[least]:+.1%} ({least}) to "
        f"{gains[most]:+.1%} ({most}); ranks that spectra predict correlate by {min(rules):.2f} to "
        f"{max(rules):.2f} with searched ones. "
        f"A second search agrees with the first by {samples['search_repeats'].mean():.2f}, and no "
        f"cut at all costs {samples['no_search_regret'].mean():+.1%} beside the search. "
        f"a, b, d, e: {judged_panel.KEY}; a: layer, module and rate are chosen on {config.prompts} "
        f"prompts (squares: the gain on these) and judged on {config.more_prompts} others. c: "
        f"median over runs and the middle 80 %. d: risks beside that after clipping, with whole "
        f"layers dropped, and with single matrices pruned by magnitude or projected to equally "
        f"many numbers. e: the extra risk by ranks that spectra predict. {dataset.sizes['run']} "
        f"trained models ({left_out(dataset)} diverged and left out), each with its own prompts; "
        f"{lost} numbers left out as not finite. Their risk "
        f"is that of ridge regression times {ratios}."
    )
