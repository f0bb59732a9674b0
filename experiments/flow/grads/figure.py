"""GradS against its rivals in a sweep of tasks, what predicts its gain, and its other claims."""

import numpy as np

from experiments.flow.grads import claims
from experiments.flow.grads.config import LAST, PRODUCTS, SWEEP, VARIANTS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.statistics import mean_interval

LOOKS = {  # rule: colour, marker
    "random": ("grey", "P"),
    "relevance × determinantal": (style.COLOURS[5], "v"),
    "similarity": (style.COLOURS[3], "D"),
    "residual": (style.COLOURS[4], "^"),
    "relevance": (style.COLOURS[2], "s"),
    "contribution": (style.COLOURS[0], "o"),
    "contribution, recomputed": (style.COLOURS[0], "*"),
    "GradS": (style.COLOURS[1], "o"),
}
ROWS = {  # claim: its name in the figure
    "strongest": "strongest rival",
    "usual": "strongest, no product",
    "strongest_last_layer": "last layer: strongest",
    "usual_last_layer": "last layer: no product",
    "random": "random",
    "times_input": "flow × input / GradS",
    "duplicates": "duplicates: strongest",
    "table": "table: strongest",
    "table_random": "table: random",
    "table_none": "table: none",
    "last_layer": "last layer / earlier",
    "last_layer_pool": "the same, in the pool",
    "recomputed_flow": "last layer again / once",
    "recomputed_contribution": "contribution again / once",
}
TICKS = (0.25, 0.5, 0.7, 1, 1.4, 2, 4)
SHADES = {"wins": style.COLOURS[2], "undecided": "lightgrey", "loses": style.COLOURS[1]}


def plot(dataset):
    from matplotlib.ticker import MaxNLocator

    figure, axes = style.figure(9.0, 6.4, (2, 3))
    usual = claims.in_the_sweep(dataset, PRODUCTS)[1]
    _draw_sweep(axes[0], claims.in_the_sweep(dataset)[1])
    _draw_counts(axes[1], dataset)
    _draw_rows(axes[2], dataset)
    share, better = dataset.ineffective.stack(cell=SWEEP), claims.ranked_better(dataset)
    _draw_cells(axes[3], share.values, usual)
    axes[3].set(xlabel="probability of irrelevant or learned")
    axes[3].set_title(f"leaving out: {_correlation(dataset, 'ineffective')}")
    _draw_cells(axes[4], better.values, usual)
    axes[4].set(xlabel="rank correlation of flow, less that of a factor")
    axes[4].xaxis.set_major_locator(MaxNLocator(5))
    axes[4].set_title(f"ranking: {_correlation(dataset, 'ranks')}")
    _draw_shots(axes[5], dataset)
    figure.legend(*axes[5].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (names, strongest), (_, usual) = (claims.in_the_sweep(dataset, w) for w in ((), PRODUCTS))
    counts, of_usual = claims.outcomes(strongest), claims.outcomes(usual)
    chosen = zip(*np.unique(names, return_counts=True), strict=True)
    rivals = ", ".join(f"{name} in {count}" for name, count in chosen)
    last = claims.in_the_sweep(dataset, PRODUCTS, LAST)[1]
    of_last = claims.outcomes(last)
    layers = " and ".join(str(claims.last_layer(dataset, each)[0]) for each in dataset.prompt)
    oracle = (dataset.oracle.sel(shots=config.judged) / dataset.zero_shot).median("run")
    larger = (dataset.larger.sel(rule="GradS") / dataset.larger_none).median("run")
    best = (dataset.best / dataset.larger_none.sel(pool=config.small)).median("run")
    total = strongest.sizes["cell"]
    return (
        f"GradS beats its strongest rival in {counts['wins']} of {total} kinds of tasks and loses "
        f"in {counts['loses']}; against rules that take no product of relevance and novelty it "
        f"wins {of_usual['wins']} and loses {of_usual['loses']}. "
        f"{config.judged} shots of {config.pool}; GradS is the norm of Eq. 2, its strongest rival "
        f"the rule that is best on other queries of the same tasks ({rivals}). a, d, e: 95 % "
        f"intervals for all {total} kinds at once, by Bonferroni, as in b for every rival by "
        "itself; d, e: rivals without products. c: "
        f"{judged_panel.KEY}; the first six as geometric means over the sweep; "
        "below 1 the first one is better. Rank "
        f"correlations of the gain with what was to predict it stand above d and e, judged "
        f"against {config.predicts:g}. Seen after the run only: noise decides, for noise in a "
        "label is new to the weights; against rules without products the ratio is "
        f"{_by_noise(usual)}, and of the last layer's flow, which wins {of_last['wins']} and loses "
        f"{of_last['loses']}, {_by_noise(last)}. f: "
        f"{config.known} of {config.d} coordinates known, density {config.density:g}, no noise; "
        f"median of {config.runs} runs and the middle 80 % of them. There the earlier layers that "
        f"are best on other queries are {layers}, alone and in the pool; an oracle that sees the "
        f"answer leaves {_shares(oracle)} of the error (with duplicates / on the table), and of "
        f"pools of {' / '.join(map(str, config.pools))} GradS leaves {_shares(larger)}, the best "
        f"subset of {config.small} {float(best):.1%}. {config.validation} runs more choose rivals; "
        f"{config.queries} queries each. Learner: {config.depth} steps of 1/λ_max."
    )


def _by_noise(ratios):
    means = {noise: float(np.exp(each.mean())) for noise, each in ratios.groupby("noise")}
    return ", ".join(f"{mean:.2f} (noise {noise:g})" for noise, mean in means.items())


def _correlation(dataset, name):  # with the judged interval
    samples = claims.samples(dataset)[name]
    low, high = mean_interval(samples)
    return f"{samples.mean():.2f} [{low:.2f}, {high:.2f}]"


def _shares(values):
    return " / ".join(f"{float(value):.1%}" for value in values)


def _draw_sweep(ax, ratios):
    """Cells of one density side by side."""
    densities, knowns, noises = (np.unique(ratios[name]) for name in SWEEP)
    place = np.searchsorted(knowns, ratios.known) * len(noises)
    place = place + np.searchsorted(noises, ratios.noise)
    beside = (place - (len(knowns) * len(noises) - 1) / 2) * 0.8 / (len(knowns) * len(noises))
    _draw_cells(ax, np.searchsorted(densities, ratios.density) + beside, ratios)
    for color, count in zip(style.COLOURS, knowns, strict=False):
        ax.plot([], [], "o", color=color, label=f"{count} known")
    for noise, face in zip(noises, (style.BLACK, "white"), strict=False):
        ax.plot([], [], "o", color=style.BLACK, mfc=face, label=f"noise {noise:g}")
    ax.set_xticks(range(len(densities)), [f"{density:g}" for density in densities])
    ax.set(xlabel="density of demonstrations")
    ax.set_title("against the strongest rival")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * (high / low) ** 0.3)
    ax.legend(ncols=2, loc="upper center", columnspacing=1)


def _draw_cells(ax, x, ratios):
    """The ratio of errors in every cell; a colour for what is known, open where there is noise."""
    knowns, ends = list(np.unique(ratios.known)), np.exp(claims.intervals(ratios))
    middle = np.exp(ratios.mean("run").values)
    bars = np.abs(np.where(np.isfinite(ends), ends, middle[:, None]).T - middle)
    for i, (count, noise) in enumerate(zip(ratios.known, ratios.noise, strict=True)):
        color = style.COLOURS[knowns.index(count)]
        look = {"color": color, "mfc": "white" if noise > 0 else color, "elinewidth": 0.7}
        ax.errorbar(x[i], middle[i], bars[:, [i]], fmt="o", **look)
    ax.axhline(1, color="grey", lw=0.8)
    style.log_axes(ax, y=True)
    ticks = [tick for tick in TICKS if ends.min() < tick < ends.max()]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set(ylabel="error of GradS / its rival's")


def _draw_counts(ax, dataset):
    """How many cells GradS wins, cannot tell and loses against every rival."""
    rivals = dataset.rule.drop_sel(rule=list(VARIANTS)).values
    outcomes = [claims.outcomes(claims.against(dataset, rival)) for rival in rivals]
    order = np.argsort([of["wins"] - of["loses"] for of in outcomes])
    start = np.zeros(len(rivals))
    for outcome, shade in SHADES.items():
        width = np.array([outcomes[i][outcome] for i in order])
        ax.barh(range(len(rivals)), width, left=start, color=shade, label=outcome)
        start = start + width
    names = [rivals[i].replace(", ", ",\n").replace(" × ", " ×\n") for i in order]
    ax.set_yticks(range(len(rivals)), names, fontsize=6)
    ax.set(xlabel="kinds of tasks", ylim=(-0.6, len(rivals) + 0.4))
    ax.set_title("against each rival")
    ax.legend(ncols=3, loc="upper center", columnspacing=1)


def _draw_rows(ax, dataset):
    rows, samples = statements(results.config_of(dataset)), claims.samples(dataset)
    style.log_axes(ax, x=True, ticks=TICKS)
    judged_panel.rows(ax, rows, samples, ROWS, (0.25, 4))
    ax.set(xlabel="ratio of errors")
    ax.set_title("what is judged")


def _draw_shots(ax, dataset):
    """Errors over those without demonstrations, all rules side by side."""
    none, shots = dataset.end.sel(setting="prior", prompting="zero-shot"), dataset.shots.values
    share = (dataset.error.sel(setting="prior") / none).transpose("rule", "run", "shots")
    for i, (rule, (color, marker)) in enumerate(LOOKS.items()):
        values, beside = share.sel(rule=rule), shots * 1.025 ** (i - len(LOOKS) / 2)
        style.band(ax, beside, values, rule, color, marker)
        ax.plot(beside, np.median(values, axis=0), color=color, lw=0.8)
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="demonstrations", ylabel="error / error without")
    ax.set_title("one kind of tasks")
