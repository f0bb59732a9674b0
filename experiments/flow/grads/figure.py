"""GradS against relevance and other rivals in a sweep of tasks."""

import numpy as np

from experiments.flow.grads import claims
from experiments.flow.grads.config import RELEVANCE, SWEEP, VARIANTS
from lsa_lab.harness.draw import marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

TICKS = (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4)
SHADES = {  # verdict: what GradS does, and its colour
    "holds": ("wins", style.COLOURS[0]),
    "undecided": ("undecided", "lightgrey"),
    "fails": ("loses", style.COLOURS[1]),
}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    ratios = claims.log_ratios(dataset, RELEVANCE)
    _draw_sweep(axes[0], ratios, claims.verdicts(ratios))
    axes[0].set(ylabel="error / relevance's (below 1: better)", title="Noise in labels decides")
    _draw_counts(axes[1], dataset)
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    quiet, noisy, best = (
        float(np.exp(np.log(samples[id]).mean()))
        for id in ("without_noise", "with_noise", "strongest")
    )
    verdicts = claims.verdicts(claims.log_ratios(dataset, "strongest"))
    return (
        "GradS beats selection by relevance where labels are clean, and loses where they are "
        f"noisy: it has {quiet:.2f} times the error without noise, and {noisy:.2f} times with it. "
        "The score takes noise for information. GradS has "
        f"{best:.2f} times the error of the best rival in each kind of tasks, and beats it in "
        f"{verdicts.count('holds')} of {len(verdicts)}. {config.judged} shots of {config.pool}, "
        f"{config.runs} runs, d = {config.d}, {level()} intervals (Bonferroni). Three points in a "
        f"have {', '.join(map(str, config.knowns))} coordinates known."
    )


def _draw_sweep(ax, ratios, verdicts):
    """Cells without noise, then with it; of one density side by side, the least known first."""
    densities, knowns, noises = (np.unique(ratios[name]) for name in SWEEP)
    wide = len(knowns) + 1  # one more between densities
    place = np.searchsorted(densities, ratios.density) * wide + np.searchsorted(
        knowns, ratios.known
    )
    half = len(densities) * wide
    _draw_cells(ax, place + half * np.searchsorted(noises, ratios.noise), ratios, verdicts)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.62), max(high, 3.5))  # the same in both panels, if nothing is beyond
    for i, noise in enumerate(noises):
        words, middle = f"noise {noise:g}" if noise else "no noise", i * half + half / 2 - 1
        ax.text(middle, 0.96, words, ha="center", va="top", transform=ax.get_xaxis_transform())
        if i:
            ax.axvline(i * half - 1, color="grey", lw=0.8, ls=":")
    centres = np.arange(len(noises) * len(densities)) * wide + (wide - 2) / 2
    ax.set_xticks(centres, [f"{density:g}" for density in densities] * len(noises))
    ax.set(xlabel="density of demonstrations")


def _draw_cells(ax, x, ratios, verdicts):
    """The ratio of errors in every cell, with what it decides of GradS."""
    middle = np.exp(ratios.mean("run").values)
    ends = np.exp(claims.intervals(ratios))
    ends = np.where(np.isfinite(ends), ends, middle[:, None])  # not known from few runs
    for place, value, (low, high), verdict in zip(x, middle, ends, verdicts, strict=True):
        look = marks.LOOKS[verdict]
        ax.plot([place, place], [low, high], color=look["color"], lw=0.8)
        ax.plot(place, value, ls="none", **look)
    ax.axhline(1, color="grey", lw=0.8)
    style.log_axes(ax, y=True)
    ax.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set_ylim(min(0.65, ends.min() / 1.05), max(1.6, ends.max() * 1.05))


def _draw_counts(ax, dataset):
    """How many cells GradS wins, cannot tell and loses against every rival."""
    rivals = dataset.rule.drop_sel(rule=list(VARIANTS)).values
    verdicts = [claims.verdicts(claims.log_ratios(dataset, rival)) for rival in rivals]
    leads = [of.count("holds") - of.count("fails") for of in verdicts]
    order = np.argsort(leads, kind="stable")
    start = np.zeros(len(rivals))
    for verdict, (outcome, shade) in SHADES.items():
        width = np.array([verdicts[i].count(verdict) for i in order])
        ax.barh(range(len(rivals)), width, left=start, color=shade)
        row, color = width.argmax(), style.BLACK if outcome == "undecided" else "white"
        middle = start[row] + width[row] / 2
        ax.text(middle, row, outcome, color=color, fontsize=7, ha="center", va="center")
        start = start + width
    names = [rivals[i].replace(", ", ",\n").replace(" × ", " ×\n") for i in order]
    ax.set_yticks(range(len(rivals)), names, fontsize=7)
    ax.set(xlabel=f"of {start[0]:.0f} kinds of tasks", ylim=(len(rivals) - 0.4, -0.6))
    ax.set_title("It loses to recomputed contributions")
