"""What clipping, its rivals and the rules for a rate do to the risk, and what is judged of it."""

import numpy as np

from experiments.clipping.diverged_runs import left_out
from experiments.clipping.why_a_rate import claims
from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import MATRICES, PREDICTORS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
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
    for i, ticks in ((0, (-0.05, 0, 0.05)), (3, (-0.1, 0, 0.1, 1)), (4, (-0.01, 0, 0.01, 0.1, 1))):
        axes[i].set_xticks(ticks, [f"{tick:g}".replace("-", "\u2212") for tick in ticks])
    return figure


def plot_matrices(ax, dataset):
    """The risk after one matrix is clipped, a geometric mean over layers and matrices."""
    from matplotlib.ticker import LogLocator

    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks = dataset.kept.values[first]
    logs = np.log1p(dataset.change.sel(prompts="test", module=list(MATRICES)).isel(rate=first))
    risks = np.exp(logs.mean(("layer", "module"))).transpose(..., "rate")
    for i, name in enumerate(CONDITIONS):
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i])
        places = np.arange(len(ranks)) + 0.14 * (i - (len(CONDITIONS) - 1) / 2)
        style.band(ax, places, risks.sel(condition=name).transpose("run", "rate"), **look)
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
    most_alike = max(searched.correlations[name].mean() for name in PREDICTORS)
    far = np.exp(np.log(dataset.risk.sel(prompts="test") / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(far.sel(condition=name)):.3g} ({name})" for name in CONDITIONS)
    return (
        f"On unseen prompts a searched edit gains our models {gains[least]:+.1%} ({least}) to "
        f"{gains[most]:+.1%} ({most}). Ranks that spectra predict correlate by at most "
        f"{most_alike:.2f} with searched ranks. A second search agrees by "
        f"{samples['search_repeats'].mean():.2f}. No cut at all costs "
        f"{samples['no_search_regret'].mean():+.1%} beside the search. In a, an edit is chosen on "
        f"{config.prompts} prompts and judged on {config.more_prompts} others. "
        f"{dataset.sizes['run']} models ({left_out(dataset)} diverged) "
        f"have ridge's risk times {ratios}. "
    )
