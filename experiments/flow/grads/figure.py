"""GradS against its rivals in a sweep of tasks, what predicts its gain, and its other claims."""

import numpy as np

from experiments.flow.grads import claims, sweep
from experiments.flow.grads.config import LAST, SWEEP, VARIANTS
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level, mean_interval
from lsa_lab.store import results

AGAIN = "contribution, recomputed"
LOOKS = {  # of rules
    **{rule: style.METHOD[rule] for rule in ("random", "similarity", "relevance", "contribution")},
    AGAIN: style.METHOD["contribution"] | {"mfc": "white", "ls": "--"},
    "GradS": style.METHOD["GradS"],
}
ROWS = (  # of the figure, and those that the appendix has beside them
    *("strongest", "usual", "random", "strongest_last_layer", "usual_last_layer", "duplicates"),
    *("table", "table_random", "last_layer", "last_layer_pool"),
)
MORE_ROWS = ("table_none", "times_input", "recomputed_flow", "recomputed_contribution")
TICKS = (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4)
VERDICTS = {"wins": "holds", "undecided": "undecided", "loses": "fails"}
SHADES = {"wins": style.COLOURS[0], "undecided": "lightgrey", "loses": style.COLOURS[1]}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.5, 2.8), ((1, 1), (1, 1)))
    versus = {"strongest rival": sweep.strongest_ratios, "best usual rule": sweep.usual_ratios}
    for ax, (rival, against) in zip(axes[:2], versus.items(), strict=True):
        ratios = against(dataset)[1]
        counts = sweep.outcomes(ratios)
        _draw_sweep(ax, ratios)
        ax.set_title(f"vs. {rival}: wins {counts['wins']}, loses {counts['loses']}")
    axes[0].set(ylabel="error / rival's (below 1: better)")
    _draw_counts(axes[2], dataset)
    _draw_rows(axes[3], dataset, ROWS)
    return figure


def appendix(dataset):
    """All rows that are judged, errors by demonstrations, and what was to predict the gain."""
    figure, axes = style.stacked(6.75, (2.9, 2.5), ((1, 1), (1, 1)), "e")
    _draw_rows(axes[0], dataset, (*ROWS, *MORE_ROWS))
    _draw_shots(axes[1], dataset)
    usual = sweep.usual_ratios(dataset)[1]
    share, better = dataset.ineffective.stack(cell=SWEEP), sweep.ranking_advantage(dataset)
    for ax, values in zip(axes[2:], (share.values, better.values), strict=True):
        _draw_cells(ax, values, usual)
    axes[2].set(xlabel="probability of irrelevant or learned")
    axes[2].set(ylabel="error / best usual rule's")
    axes[2].set_title(f"leaving out: {_correlation(dataset, 'ineffective')}")
    axes[3].set(xlabel="rank correlation of flow, less that of a factor")
    axes[3].set_title(f"ranking: {_correlation(dataset, 'ranks')}")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (names, strongest), (_, usual) = sweep.strongest_ratios(dataset), sweep.usual_ratios(dataset)
    counts, of_usual = sweep.outcomes(strongest), sweep.outcomes(usual)
    chosen = zip(*np.unique(names, return_counts=True), strict=True)
    rivals = ", ".join(f"{name} in {count}" for name, count in chosen)
    last = sweep.usual_ratios(dataset, LAST)[1]
    of_last = sweep.outcomes(last)
    layers = " and ".join(str(sweep.last_layer(dataset, each)[0]) for each in dataset.prompt)
    oracle = (dataset.oracle.sel(shots=config.judged) / dataset.zero_shot).median("run")
    larger = (dataset.larger.sel(rule="GradS") / dataset.larger_none).median("run")
    best = (dataset.best / dataset.larger_none.sel(pool=config.small)).median("run")
    total = strongest.sizes["cell"]
    return (
        f"GradS beats its strongest rival in {counts['wins']} of {total} kinds of tasks and loses "
        f"in {counts['loses']}. Against rules that take no product of relevance and novelty it "
        f"wins {of_usual['wins']} and loses {of_usual['loses']}. a, b: errors with "
        f"{config.judged} shots of {config.pool}, {level()} intervals for all {total} kinds at "
        f"once (Bonferroni); three points: {_listed(config.knowns)} coordinates known. The rival "
        f"is best on other queries of the same tasks (a: {rivals}); usual: without a product. c: "
        "so for every rival by itself. Seen after the run only: noise decides, for noise in a "
        f"label is new to the weights; in b the ratio is {_noise_means(usual)}, and of the last "
        f"layer's flow, which wins {of_last['wins']} and loses {of_last['loses']}, "
        f"{_noise_means(last)}. "
        f"d: {judged_panel.KEY}; the first five are geometric means over the sweep. "
        f"Appendix: e, all rows; f, {config.known} of {config.d} coordinates known, density "
        f"{config.density:g}, no noise, medians of {config.runs} runs, middle 80 % (the earlier "
        f"layers that are best on other queries are {layers}, alone and in the pool; an oracle "
        f"leaves {_shares(oracle)} of the error, with duplicates / on the table; of pools of "
        f"{' / '.join(map(str, config.pools))} GradS leaves {_shares(larger)}, the best subset of "
        f"{config.small} {float(best):.1%}); g, h, rank correlations of the gain over the best "
        f"usual rule with what was to predict it, judged against {claims.PREDICTS:g}. "
        f"{config.validation} runs more choose rivals; {config.queries} queries each. Learner: "
        f"{config.depth} steps of 1/λ_max; GradS: the norm of Eq. 2."
    )


def _noise_means(ratios):
    means = {noise: float(np.exp(each.mean())) for noise, each in ratios.groupby("noise")}
    return ", ".join(f"{mean:.2f} (noise {noise:g})" for noise, mean in means.items())


def _correlation(dataset, name):  # with the judged interval
    samples = evidence(claims, dataset)[1][name]
    low, high = mean_interval(samples)
    return f"{samples.mean():.2f} [{low:.2f}, {high:.2f}]"


def _shares(values):
    return " / ".join(f"{float(value):.1%}" for value in values)


def _draw_sweep(ax, ratios):
    """Cells without noise, then with it; of one density side by side, the least known first."""
    densities, knowns, noises = (np.unique(ratios[name]) for name in SWEEP)
    wide = len(knowns) + 1  # one more between densities
    place = np.searchsorted(densities, ratios.density) * wide + np.searchsorted(
        knowns, ratios.known
    )
    half = len(densities) * wide
    _draw_cells(ax, place + half * np.searchsorted(noises, ratios.noise), ratios)
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


def _listed(numbers):
    return ", ".join(f"{number:g}" for number in numbers)


def _draw_cells(ax, x, ratios):
    """The ratio of errors in every cell, with what it decides of GradS."""
    middle = np.exp(ratios.mean("run").values)
    ends = np.exp(sweep.intervals(ratios))
    ends = np.where(np.isfinite(ends), ends, middle[:, None])  # not known from few runs
    for place, value, (low, high), outcome in zip(
        x, middle, ends, sweep.each_outcome(ratios), strict=True
    ):
        look = judged_panel.LOOKS[VERDICTS[outcome]]
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
    outcomes = [sweep.outcomes(sweep.rule_ratios(dataset, rival)) for rival in rivals]
    order = np.argsort([of["loses"] - of["wins"] for of in outcomes])[::-1]
    start = np.zeros(len(rivals))
    for outcome, shade in SHADES.items():
        width = np.array([outcomes[i][outcome] for i in order])
        ax.barh(range(len(rivals)), width, left=start, color=shade)
        row, color = width.argmax(), style.BLACK if outcome == "undecided" else "white"
        middle = start[row] + width[row] / 2
        ax.text(middle, row, outcome, color=color, fontsize=7, ha="center", va="center")
        start = start + width
    names = [rivals[i].replace(", ", ",\n").replace(" × ", " ×\n") for i in order]
    ax.set_yticks(range(len(rivals)), names, fontsize=7)
    ax.set(xlabel=f"of {start[0]:.0f} kinds of tasks", ylim=(len(rivals) - 0.4, -0.6))
    ax.set_title("against each rival")


def _draw_rows(ax, dataset, ids):
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2, 4))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.25, 4), ids)
    ax.set(xlabel="ratio of errors")
    ax.set_title("what is judged")


def _draw_shots(ax, dataset):
    """Errors over those without demonstrations, rules side by side."""
    none, shots = dataset.end.sel(setting="prior", prompting="zero-shot"), dataset.shots.values
    share = (dataset.error.sel(setting="prior") / none).transpose("rule", "run", "shots")
    for i, rule in enumerate(LOOKS):
        values, beside = share.sel(rule=rule), shots * 1.03 ** (i - len(LOOKS) / 2)
        middle, ends = np.median(values, 0), np.quantile(values, style.QUANTILES, axis=0)
        ax.errorbar(beside, middle, np.abs(ends - middle), lw=0.8, elinewidth=0.8, **LOOKS[rule])
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ends = {rule: float(share.sel(rule=rule)[:, -1].median()) for rule in LOOKS}
    marks.end_labels(ax, ends, [look["color"] for look in LOOKS.values()])
    ax.set(xlabel="demonstrations", ylabel="error / error without")
    ax.set_title("one kind of tasks")
