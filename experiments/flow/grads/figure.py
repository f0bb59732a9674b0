"""GradS against its rivals in a sweep of tasks, and its other claims."""

import numpy as np

from experiments.flow.grads import claims, sweep
from experiments.flow.grads.config import RECOMPUTED, SWEEP, VARIANTS
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LOOKS = {  # of rules
    **{rule: style.METHOD[rule] for rule in ("random", "similarity", "relevance", "contribution")},
    RECOMPUTED: style.METHOD["contribution"] | {"mfc": "white", "ls": "--"},
    "GradS": style.METHOD["GradS"],
}
VERSUS = {"strongest": "strongest rival", "usual": "best usual rule"}
TICKS = (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4)
SHADES = {  # verdict: what GradS does, and its colour
    "holds": ("wins", style.COLOURS[0]),
    "undecided": ("undecided", "lightgrey"),
    "fails": ("loses", style.COLOURS[1]),
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.5, 2.8), ((1, 1), (1, 1)))
    for ax, (rival, name) in zip(axes[:2], VERSUS.items(), strict=True):
        ratios = sweep.log_ratios(dataset, rival)
        verdicts = sweep.verdicts(ratios)
        _draw_sweep(ax, ratios, verdicts)
        wins, loses = verdicts.count("holds"), verdicts.count("fails")
        ax.set_title(f"vs. {name}: wins {wins}, loses {loses}")
    axes[0].set(ylabel="error / rival's (below 1: better)")
    _draw_counts(axes[2], dataset)
    style.log_axes(axes[3], x=True, ticks=(0.25, 0.5, 1, 2, 4))
    judged_panel.rows(axes[3], *evidence(claims, dataset), (0.25, 4))
    axes[3].set(xlabel="ratio of errors", title="what is judged")
    return figure


def appendix(dataset):
    """Errors over those without demonstrations, rules side by side, on one kind of tasks."""
    figure, (ax,) = style.figure(5.5, 2.6, first="e")
    none, shots = dataset.end.sel(setting="prior"), dataset.shots.values
    share = (dataset.error.sel(setting="prior") / none).transpose("rule", "run", "shots")
    for i, rule in enumerate(LOOKS):
        values, beside = share.sel(rule=rule), shots * 1.03 ** (i - len(LOOKS) / 2)
        middle, ends = np.median(values, 0), np.quantile(values, style.QUANTILES, axis=0)
        ax.errorbar(beside, middle, np.abs(ends - middle), lw=0.8, elinewidth=0.8, **LOOKS[rule])
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ends = {rule: float(share.sel(rule=rule)[:, -1].median()) for rule in LOOKS}
    marks.end_labels(ax, ends, [look["color"] for look in LOOKS.values()])
    ax.set(xlabel="demonstrations", ylabel="error / error without", title="one kind of tasks")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    strongest, usual = (sweep.log_ratios(dataset, rival) for rival in VERSUS)
    wins, over_usual = (sweep.verdicts(ratios).count("holds") for ratios in (strongest, usual))
    means = {noise: float(np.exp(each.mean())) for noise, each in usual.groupby("noise")}
    quiet, noisy = (f"{means[end(means)]:.2f}" for end in (min, max))
    return (
        f"GradS beats its strongest rival in {wins} of {strongest.sizes['cell']} kinds of tasks. "
        "The best usual rule, without a product of relevance and novelty, loses to it in "
        f"{over_usual}. Post hoc: noise in labels decides; in "
        f"b the error ratio is {quiet} without noise and {noisy} with "
        f"it. a, b: {config.judged} shots of {config.pool} and {level()} intervals (Bonferroni); "
        f"three points have {', '.join(map(str, config.knowns))} coordinates known. "
        f"Appendix: d = {config.d}, density {config.density:g}, no noise; "
        f"bars span the middle 80 % of {config.runs} runs."
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
    ends = np.exp(sweep.intervals(ratios))
    ends = np.where(np.isfinite(ends), ends, middle[:, None])  # not known from few runs
    for place, value, (low, high), verdict in zip(x, middle, ends, verdicts, strict=True):
        look = judged_panel.LOOKS[verdict]
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
    verdicts = [sweep.verdicts(sweep.log_ratios(dataset, rival)) for rival in rivals]
    order = np.argsort([of.count("fails") - of.count("holds") for of in verdicts])[::-1]
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
    ax.set_title("against each rival")
