"""Risks against heads and against demonstrations, among those of rules, and what is judged."""

import numpy as np

from experiments.heads.heads_beyond_d.claims import at, by_row, samples
from experiments.heads.heads_beyond_d.config import FIRST, FULL, SINGLE, counts, statements
from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, RULES, SPARSE_BAYES
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels

LINEAR, LEAST_SQUARES = style.METHOD["linear"], "least squares"
WHERE = {FIRST: ("white", "--", "in layer 1"), FULL: (LINEAR["color"], "-", "in every layer")}
RATIOS, SLOPES = (0.25, 4), (-2, 2)  # what the panels of judged rows show


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.6, 3.0, 1.1), ((1, 1), (1,), (1,)))
    against_heads(axes[0], dataset)
    against_n(axes[1], dataset)
    plot_judged(*axes[2:], dataset)
    return figure


def of_ridge(dataset):  # [shots]
    return dataset.rule_risk.sel(rule=RIDGE).values


def against_heads(ax, dataset):
    """Means of seeds at the judged n, by the number of heads."""
    config = results.config_of(dataset)
    place = list(config.shots).index(config.judged)
    every, ends, ridge = by_row(dataset), {}, of_ridge(dataset)[place]
    for kind, (face, dashes, words) in WHERE.items():
        heads = sorted({h for where, h in every if where in (kind, SINGLE)})
        runs = [at(every, kind, h)[:, place] / ridge for h in heads]
        means = [np.nanmean(own) for own in runs]
        ax.plot(heads, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes)
        for h, own in zip(heads, runs, strict=True):
            x = h * (0.93 if kind == FIRST else 1.07)
            ax.plot([x] * len(own), own, ".", color=LINEAR["color"], ms=2.5)
        ends[words] = means[-1], LINEAR["color"]
    for rule in (RIDGE, LASSO, SPARSE_BAYES):
        risk = float(dataset.rule_risk.sel(rule=rule)[place]) / ridge
        ends[rule] = risk, style.METHOD[rule]["color"]
        ax.axhline(risk, color=ends[rule][1], lw=0.8, ls=":", zorder=0)
    d = counts(config)[FULL][1]
    ax.axvline(d, color="grey", lw=0.8, zorder=0)
    style.log_axes(ax, x=True, ticks=sorted({h for _, h in every}))
    ax.set(xlabel=f"heads; line: d = {d}", ylabel=f"risk / ridge's, n = {config.judged}")
    ax.set(ylim=(0, None), title="heads")
    name_ends(ax, ends)


def against_n(ax, dataset):
    """One head a layer, d in the first and d in all, and the rules."""
    every, (_, d, _) = by_row(dataset), counts(results.config_of(dataset))[FULL]
    shots, ends = dataset.shots.values, {}
    for rule in (*RULES, LEAST_SQUARES):
        risks = dataset.rule_risk.sel(rule=rule).values / of_ridge(dataset)
        look = style.METHOD[rule]["color"], "--" if rule == EQUIVARIANT else "-"
        style.line(ax, shots, risks, None, *look)
        ends[rule.replace("rotation-", "")] = risks[-1], look[0]
    places = {"1 head a layer": (FIRST, 1), f"{d} in layer 1": (FIRST, d), f"{d} in all": (FULL, d)}
    for name, (kind, heads) in places.items():
        means = np.nanmean(at(every, kind, heads), axis=0) / of_ridge(dataset)
        face, dashes = WHERE[kind][:2] if heads > 1 else ("white", ":")
        ax.plot(shots, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes)
        ends[name] = means[-1], LINEAR["color"]
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", title="every n")
    name_ends(ax, ends)


def name_ends(ax, ends: dict[str, tuple[float, str]]):
    """The names of lines at their ends {name: (height, colour)}."""
    heights = {name: height for name, (height, _) in ends.items()}
    end_labels(ax, heights, [color for _, color in ends.values()])


def plot_judged(ax, under, dataset):
    """Ratios of risks, and below them how much more a head saves below d than above."""
    config, values = results.config_of(dataset), samples(dataset)
    rows, labels, slopes = statements(config), {}, {}
    for kind, (_, _, words) in WHERE.items():
        fewer, d, more = counts(config)[kind]
        labels[f"up_to_d_{kind}"] = f"{d} heads {words} / {fewer}"
        labels[f"beyond_d_{kind}"] = f"{more} heads {words} / {d}"
        slopes[f"kink_{kind}"] = words
    d = counts(config)[FULL][1]
    labels |= {
        "first_suffices": f"{d} in layer 1 / in every layer",
        "first_ridge": f"{d} in layer 1 / ridge",
        "full_ridge": f"{d} in every layer / ridge",
        "longer": "the same, longer prompts",
        "first_lasso": f"{d} in layer 1 / Lasso",
        "full_lasso": f"{d} in every layer / Lasso",
        "full_bayes": f"{d} in every layer / sparse Bayes",
        "level": "loss, last sixth / before",
    }
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2, 4))
    judged_panel.rows(ax, rows, values, labels, RATIOS)
    ax.set(xlabel="risk / the risk that is named", title="what is judged")
    judged_panel.rows(under, rows, values, slopes, SLOPES)
    under.set(xlabel="log risk saved by a unit of log heads, below d less above")


def caption(dataset) -> str:
    config, values = results.config_of(dataset), samples(dataset)
    mean = {id: float(np.exp(np.log(values[id]).mean())) for id in values if "kink" not in id}
    fewer, d, more = counts(config)[FULL]
    task = config.models[0][1].task
    return (
        f"From {fewer} heads to d = {d} the risk falls to {mean['up_to_d_full']:.2f} of itself, "
        f"with {more} to {mean['beyond_d_full']:.2f} of that; in layer 1 alone to "
        f"{mean['up_to_d_first']:.2f} and {mean['beyond_d_first']:.2f}. Three layers of linear "
        f"attention on sparse regression, s = {task.sparsity}, noise {task.noise_std:g}, trained "
        f"at n = {', '.join(map(str, task.lengths))}; {config.test_prompts} common test prompts. "
        f"a: means of seeds, small points. b: the same, every n. c, d: {judged_panel.KEY}; "
        f"n = {config.judged} if not said."
    )
