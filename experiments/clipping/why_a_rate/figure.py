"""What a searched edit and W_K alone gain in each condition, and what one clipped matrix costs."""

import numpy as np

from experiments.clipping.clipped_models import WORTHWHILE
from experiments.clipping.drawing import plot_rows, quality
from experiments.clipping.why_a_rate import claims
from experiments.clipping.why_a_rate.config import CONDITIONS
from experiments.clipping.why_a_rate.rate_rules import MATRICES, PREDICTORS, repeats
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.statistics import level

SEARCHED = {"of all": "best of all edits", "of w_k": "best of W_K alone"}


def plot(dataset):
    return style.panels(dataset, 2.8, plot_gains, plot_matrices)


def plot_gains(ax, dataset):
    """A row a condition: means over runs and their intervals."""
    gains = dataset.gain.transpose("search", "run", "condition")
    plot_rows(
        ax, CONDITIONS, {name: gains.sel(search=key).values for key, name in SEARCHED.items()}
    )
    kept = int((gains.sel(search="of all").mean("run") >= WORTHWHILE).sum())
    ax.set_title(f"Clipping gains in {kept} of {len(CONDITIONS)} cases")
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set(ylim=(len(CONDITIONS) + 0.2, -0.6), xlabel="gain on test / unclipped risk")
    ax.legend(loc="lower right")


def plot_matrices(ax, dataset):
    """The risk after one matrix is clipped, a geometric mean over layers and matrices."""
    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks = dataset.kept.values[first]
    logs = np.log1p(dataset.change.sel(prompts="test", module=list(MATRICES)).isel(rate=first))
    risks = np.exp(logs.mean(("layer", "module"))).transpose(..., "rate")
    for i, name in enumerate(CONDITIONS):
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i])
        places = np.arange(len(ranks)) + 0.14 * (i - (len(CONDITIONS) - 1) / 2)
        style.band(ax, places, risks.sel(condition=name).transpose("run", "rate"), **look)
    ax.set(xlabel="rank kept of one matrix (0: dropped)", ylabel="risk clipped / unclipped")
    ax.set_title("Risk rises as rank falls")
    ax.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    style.log_axes(ax, y=True)
    ax.set_yticks((1, 2, 5, 10), ("1", "2", "5", "10"))
    ends = {name: float(risks.sel(condition=name)[..., -1].median()) for name in CONDITIONS}
    end_labels(ax, ends, style.COLOURS)


def caption(dataset) -> str:
    searched = claims.numbers(dataset)
    gains = {name: float(searched.gain("of all", name).mean()) for name in CONDITIONS}
    listed = ", ".join(f"{gain:+.1%} ({name})" for name, gain in gains.items())
    alike = max(searched.correlation(name).mean() for name in PREDICTORS)
    matched = dataset.sel(condition="matched", prompts="test")
    return (
        f"A searched edit gains {listed} of the risk. Ranks that spectra predict correlate with "
        f"searched ranks by at most {alike:.2f}, and those of a second search by "
        f"{repeats(dataset).mean():.2f}. Answers are cut at twice the largest label. Edits are "
        f"judged on fresh prompts. Bars in a are {level()} intervals, and in b they span the "
        "middle 80 %. " + quality(dataset, matched.risk, matched.ridge, " on matched prompts")
    )
