"""Risks against heads and against demonstrations, among those of rules, and what is judged."""

import numpy as np

from experiments.heads.heads_beyond_d.claims import at, by_row, samples
from experiments.heads.heads_beyond_d.config import FIRST, FULL, counts, statements
from experiments.heads.looks import levels
from experiments.heads.rule_names import LASSO, RIDGE, RULES, SPARSE_BAYES
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label

LINEAR = style.METHOD["linear"]
WHERE = {FIRST: ("white", "--", "in layer 1"), FULL: (LINEAR["color"], "-", "in every layer")}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.5, 3.2), ((1, 1), (1,)))
    against_heads(axes[0], dataset)
    against_n(axes[1], dataset)
    plot_judged(axes[2], dataset)
    return figure


def of_ridge(dataset):  # [shots]
    return dataset.rule_risk.sel(rule=RIDGE).values


def against_heads(ax, dataset):
    """Means of seeds at the judged n, by the number of heads."""
    config = results.config_of(dataset)
    place = list(config.shots).index(config.judged)
    every, numbers = by_row(dataset), counts(config)
    for kind, (face, dashes, words) in WHERE.items():
        heads = sorted({h for where, h in every if where in (kind, "single")})
        runs = [at(every, kind, h)[:, place] / of_ridge(dataset)[place] for h in heads]
        means = [np.nanmean(own) for own in runs]
        ax.plot(heads, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes, label=words)
        for h, own in zip(heads, runs, strict=True):
            ax.plot([h] * len(own), own, ".", color=LINEAR["color"], ms=2.5)
    rules = dataset.rule_risk.isel(shots=place) / of_ridge(dataset)[place]
    levels(ax, {rule: float(rules.sel(rule=rule)) for rule in (RIDGE, LASSO, SPARSE_BAYES)})
    d = numbers[FULL][1]
    ax.axvline(d, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=sorted({h for _, h in every}))
    ax.set(xlabel=f"heads; line: d = {d}", ylabel=f"risk / ridge's, n = {config.judged}")
    ax.set(ylim=(0, None), title="heads")
    ax.legend(loc="upper right")


def against_n(ax, dataset):
    """One head a layer, d in the first and d in all, and the rules."""
    every, (_, d, _) = by_row(dataset), counts(results.config_of(dataset))[FULL]
    shots = dataset.shots.values
    for rule in (*RULES, "least squares"):
        risks, color = dataset.rule_risk.sel(rule=rule).values, style.METHOD[rule]["color"]
        style.line(ax, shots, risks / of_ridge(dataset), color=color)
        direct_label(ax, shots[-1], (risks / of_ridge(dataset))[-1], rule, color)
    for (kind, heads), name in {
        (FIRST, 1): "1",
        (FIRST, d): f"{d} in layer 1",
        (FULL, d): d,
    }.items():
        means = np.nanmean(at(every, kind, heads), axis=0) / of_ridge(dataset)
        face, dashes, _ = WHERE[kind]
        look = dict(color=LINEAR["color"], mfc=face, marker="o", ls=dashes if heads > 1 else ":")
        ax.plot(shots, means, **look)
        direct_label(ax, shots[0], means[0], f"{name}", LINEAR["color"], (-4, 0))
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", title="every n")
    ax.set(xlim=(shots[0] / 2.5, shots[-1] * 4))


def plot_judged(ax, dataset):
    rows, numbers = statements(results.config_of(dataset)), counts(results.config_of(dataset))
    labels = {}
    for kind, where in ((FIRST, "layer 1"), (FULL, "every layer")):
        fewer, d, more = numbers[kind]
        labels[f"up_to_d_{kind}"] = f"{d} heads / {fewer}, {where}"
        labels[f"beyond_d_{kind}"] = f"{more} heads / {d}, {where}"
    labels |= {
        "first_suffices": f"{d} in layer 1 / in every layer",
        "first_ridge": f"{d} in layer 1 / ridge",
        "full_ridge": f"{d} in every layer / ridge",
        "first_lasso": f"{d} in layer 1 / Lasso",
        "full_lasso": f"{d} in every layer / Lasso",
        "full_bayes": f"{d} in every layer / sparse Bayes",
        "longer": "the same / ridge, longer prompts",
        "level": "loss, last sixth / before",
    }
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(ax, rows, samples(dataset), labels, (0.25, 4))
    ax.set(xlabel="risk / the risk that is named", title="what is judged")


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
        f"a: small points: seeds. c: {judged_panel.KEY}."
    )
