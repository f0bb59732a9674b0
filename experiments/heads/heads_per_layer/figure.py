"""The risks of models by the heads of their layers, among those of rules that know the task."""

import numpy as np

from experiments.heads.heads_per_layer import claims
from experiments.heads.heads_per_layer.config import (
    FIRST,
    FULL,
    SINGLE,
    counts,
    depths,
    place_of,
    sizes,
)
from experiments.heads.heads_per_layer.ratios import most_over, risks_of, risks_with
from experiments.heads.rule_names import LASSO, RIDGE, RULES, SPARSE_BAYES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import parts, results

VARIANTS = {"single": ":", "first": "--", "full": "-"}  # variants against n
LINEAR, DESCENT = style.METHOD["linear"], style.METHOD["descent"]
# Where models of one row have their heads: faces of markers, lines, words.
WHERE = {FIRST: ("white", "--", "in layer 1"), FULL: (LINEAR["color"], "-", "in every layer")}
# The judged rows of these models, from the top.
BEYOND = ("up_to_d_first", "beyond_d_first", "up_to_d_full", "beyond_d_full")
BEYOND += ("first_ridge", "full_ridge", "longer", "full_bayes")


def plot(dataset):
    config = results.config_of(dataset)
    models = depths(config)[:2]
    figure, axes = style.stacked(6.75, (2.6, 2.1, 2.6), ((1, 1),) * 3)
    for ax, under, (name, spec) in zip(axes[:2], axes[4:], models, strict=False):
        beside_rules(ax, dataset, name, spec)
        plot_judged(under, dataset, name, spec)
    for ax in (axes[1], axes[5])[: 2 * (2 - len(models))]:
        ax.set_visible(False)
    name, spec = models[0]
    against_n(axes[2], dataset, name, spec)
    against_heads(axes[3], dataset)
    return figure


def appendix(dataset):
    """What is judged of fewer heads than covariates, as many and more."""
    figure, (ax,) = style.figure(5.5, 2.6, first="g")
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2, 4))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.25, 4), BEYOND)
    ax.set(xlabel="risk / the risk that is named")
    d = counts(results.config_of(dataset))[FULL][1]
    ax.set_title(f"judged, up to more heads than d = {d}")
    return figure


def beside_rules(ax, dataset, name: str, spec):
    """A row for each variant of a model and for each rule, at the n that is judged."""
    over, rows = over_ridge(dataset, name), []
    for heads in dataset[f"heads, {name}"].values:
        rows.append((heads, over[f"risk, {name}"].sel({f"heads, {name}": heads}), LINEAR))
    rows.append((f"descent, {spec.architecture.depth} steps", over[f"descent, {name}"], DESCENT))
    rows += [(rule, over.rule_risk.sel(rule=rule), style.METHOD[rule]) for rule in RULES]
    shots = results.config_of(dataset).judged
    for row, (_, risks, look) in enumerate(rows):
        runs = np.atleast_1d(risks.sel(shots=shots).values)
        if len(runs) > 1:
            ends = np.ravel(style.mean_ends(runs[:, None]))
            ax.plot(ends, [row, row], "-", color=look["color"])
        point = look | {"marker": look["marker"] or "|"}
        ax.plot(runs.mean(), row, **point, ls="none", ms=5)
    ax.axvline(1, color=style.BLACK, lw=0.8, ls=":", zorder=0)
    ax.set_yticks(range(len(rows)), [label for label, *_ in rows], fontsize=7)
    ax.set(xlabel=f"risk / ridge's, n = {shots}", xlim=(0, 1.45), ylim=(len(rows) - 0.4, -0.6))
    ax.set_title(f"heads of {spec.architecture.depth} layers")


def over_ridge(dataset, name: str):
    """The risks of a model's variants, of descent and of rules over that of ridge, by shots."""
    kinds = dataset[[f"risk, {name}", f"descent, {name}", "rule_risk"]]
    return kinds / dataset.rule_risk.sel(rule=RIDGE)


def plot_judged(ax, dataset, name: str, spec):
    """What is judged of one model."""
    statements, samples = evidence(claims, dataset)
    cells = [cell for cell in cells_of(statements) if cell.case.get("model") == name]
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(ax, cells, samples, (0.25, 2))
    ax.set(xlabel="risk / the risk that is named")
    ax.set_title(f"judged, {spec.architecture.depth} layers")


def against_n(ax, dataset, name: str, spec):
    """Models of one head a layer, of many in the first and of many in all, among the rules."""
    over, shots = over_ridge(dataset, name), dataset.shots.values
    curves = {rule: over.rule_risk.sel(rule=rule).values for rule in RULES[1:]}
    curves[f"descent, {spec.architecture.depth} steps"] = over[f"descent, {name}"].values
    for rule, risks in curves.items():
        color = style.METHOD.get(rule, DESCENT)["color"]
        style.line(ax, shots, risks, color=color)
        direct_label(ax, shots[-1], risks[-1], rule, color, (6, 0))
    ax.hlines(1, shots[0], shots[-1], color=style.BLACK, lw=0.8, ls=":", zorder=0)
    for kind, dashes in VARIANTS.items():
        if (place := spec.architecture.places.get(kind)) is not None:
            own = over[f"risk, {name}"].isel({f"heads, {name}": place})
            runs, words = own.transpose("seed", "shots").values, str(own[f"heads, {name}"].values)
            style.mean_points(ax, shots, runs, **LINEAR, ls=dashes, capsize=2)
            direct_label(ax, shots[0], runs[:, 0].mean(), words, LINEAR["color"], (-5, 0))
    style.log_axes(ax, x=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", ylim=(0, None))
    ax.set(xlim=(shots[0] / 2, None), title=f"{spec.architecture.depth} layers, every n")


def against_heads(ax, dataset):
    """Means of seeds at the judged n, by the number of heads."""
    config, ends = results.config_of(dataset), {}
    place = config.beyond_d.shots.index(config.beyond_d.judged)
    rules = parts.part(dataset, "beyond_d").rule_risk.isel(shots=place)
    ridge, models = float(rules.sel(rule=RIDGE)), [place_of(spec) for _, spec in sizes(config)]
    for kind, (face, dashes, words) in WHERE.items():
        heads = sorted({h for where, h in models if where in (kind, SINGLE)})
        runs = [risks_with(dataset, kind, h)[:, place] / ridge for h in heads]
        means = [np.nanmean(own) for own in runs]
        ax.plot(heads, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes)
        for h, own in zip(heads, runs, strict=True):
            x = h * (0.93 if kind == FIRST else 1.07)
            ax.plot([x] * len(own), own, ".", color=LINEAR["color"], ms=2.5)
        ends[words] = means[-1], LINEAR["color"]
    for rule in (RIDGE, LASSO, SPARSE_BAYES):
        ends[rule] = float(rules.sel(rule=rule)) / ridge, style.METHOD[rule]["color"]
        ax.axhline(ends[rule][0], color=ends[rule][1], lw=0.8, ls=":", zorder=0)
    d = counts(config)[FULL][1]
    ax.axvline(d, color="grey", lw=0.8, zorder=0)
    style.log_axes(ax, x=True, ticks=sorted({h for _, h in models}))
    ax.set(xlabel="heads, in layer 1 or in all", ylim=(0, None), title=f"heads, d = {d}")
    ax.set(ylabel=f"risk / ridge's, n = {config.beyond_d.judged}")
    heights = {name: height for name, (height, _) in ends.items()}
    end_labels(ax, heights, [color for _, color in ends.values()])


def caption(dataset) -> str:
    config = results.config_of(dataset)
    models, (_, samples) = depths(config), evidence(claims, dataset)
    risks = [risks_of(dataset, name) for name, _ in models]
    over_bayes = max(row["full"].mean() / row[SPARSE_BAYES].mean() for row in risks)
    later = all(row["first"].mean() > row["later"].mean() for row in risks if "later" in row)
    where = "later layers more than in the first" if later else "the first layer most"
    over = [
        most_over(dataset, "ridge", name).mean()
        for name, spec in models
        if "first" in spec.architecture.places
    ]
    fewer, d, more = counts(config)[FULL]
    gain, rest = (np.exp(np.log(samples[id]).mean()) for id in ("up_to_d_full", "beyond_d_full"))
    lost = sum(int((dataset[f"taken, {n}"] < s.training.steps).sum()) for n, s in models)
    return (
        f"Heads help in {where}. Many in layer 1 and one in each later layer have at most "
        f"{max(over, default=np.nan):.2f} of ridge's risk at every n. Many everywhere have at most "
        f"{over_bayes:.2f} times the sparse Bayes rule's. At d = {d} the risk falls to {gain:.2f} "
        f"of itself from {fewer} heads to {d}, and to {rest:.2f} of that with {more}. "
        f"Descent has a tuned size for each step. {lost} trainings diverged."
    )
