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
from experiments.heads.heads_per_layer.ratios import least_over_later, most_over, risks_with
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

# Variants against n: faces of markers, lines.
LOOKS = {SINGLE: ("white", ":"), FIRST: ("white", "--"), "later": (None, "--"), FULL: (None, "-")}
LINEAR, DESCENT = style.METHOD["linear"], style.METHOD["descent"]
# Where models of one row have their heads: faces of markers, lines, words.
WHERE = {FIRST: ("white", "--", "in layer 1"), FULL: (LINEAR["color"], "-", "in every layer")}


def plot(dataset):
    return style.panels(dataset, 2.9, shots_curves, heads_curves)


def shots_curves(ax, dataset):
    """One head a layer, many in the first or in the later ones, and many in all, among rules: risks
    over that of ridge."""
    (name, spec), shots = depths(results.config_of(dataset))[0], dataset.shots.values
    kinds = dataset[[f"risk, {name}", f"descent, {name}", "rule_risk"]]
    over = kinds / dataset.rule_risk.sel(rule=RIDGE)
    curves = {rule: over.rule_risk.sel(rule=rule).values for rule in (LASSO, SPARSE_BAYES)}
    curves["descent"] = over[f"descent, {name}"].values
    for rule, risks in curves.items():
        color = style.METHOD.get(rule, DESCENT)["color"]
        style.line(ax, shots, risks, color=color)
        direct_label(ax, shots[-1], risks[-1], rule, color, (4, 0))
    ax.hlines(1, shots[0], shots[-1], color=style.BLACK, lw=0.8, ls=":", zorder=0)
    for kind, (face, dashes) in LOOKS.items():
        if (place := spec.architecture.places.get(kind)) is not None:
            own = over[f"risk, {name}"].isel({f"heads, {name}": place})
            runs, words = own.transpose("seed", "shots").values, str(own[f"heads, {name}"].values)
            look = LINEAR | {"mfc": face or LINEAR["color"]}
            style.mean_points(ax, shots, runs, label=words, **look, ls=dashes, capsize=2)
    style.log_axes(ax, x=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's")
    ax.set(xlim=(None, shots[-1] * 2.6), ylim=(0, 1.25 * ax.get_ylim()[1]))
    ax.set_title("Later heads together do more")
    ax.legend(loc="upper right", ncols=2)


def heads_curves(ax, dataset):
    """Means of seeds at the judged n, by the number of heads."""
    config, ends = results.config_of(dataset), {}
    n = config.beyond_d.judged
    rules = parts.part(dataset, "beyond_d").rule_risk.sel(shots=n)
    ridge, models = float(rules.sel(rule=RIDGE)), [place_of(spec) for _, spec in sizes(config)]
    for kind, (face, dashes, words) in WHERE.items():
        heads = sorted({h for where, h in models if where in (kind, SINGLE)})
        runs = [risks_with(dataset, kind, h).sel(shots=n).values / ridge for h in heads]
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
    ax.set(xlabel="heads, in layer 1 or in all", ylabel=f"risk / ridge's, n = {n}", ylim=(0, None))
    ax.set_title(f"Risk still falls beyond d = {d}")
    heights = {name: height for name, (height, _) in ends.items()}
    end_labels(ax, heights, [color for _, color in ends.values()])


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    models, (fewer, d, more) = depths(config), counts(config)[FULL]
    pairs = [(name, spec.architecture.places) for name, spec in models]
    later = [least_over_later(dataset, name).mean() for name, own in pairs if "later" in own]
    single = max(most_over(dataset, RIDGE, SINGLE, name).mean() for name, _ in pairs)
    wide = np.exp(np.log(samples["single_ridge"]).mean())
    early = [samples[id] for id in ("early_6", "early_9") if samples.get(id) is not None]
    equal = [float(own.mean()) for own in early]
    gain, rest = (np.exp(np.log(samples[id]).mean()) for id in ("up_to_d_full", "beyond_d_full"))
    lost = sum(int((dataset[f"taken, {n}"] < s.training.steps).sum()) for n, s in models)
    return (
        "Many heads in all later layers help more than many in the first: the latter have "
        f"{min(later, default=np.nan):.2f} times the risk or more. With equal numbers of heads the "
        f"ratio is {max(equal, default=np.nan):.2f} or less. At the worst n, one head a layer has "
        f"{single:.2f} of ridge's risk, but {wide:.2f} times it at d = {d}. In all layers {d} "
        f"heads have {gain:.2f} of the risk of {fewer}, and {more} heads {rest:.2f} of the risk of "
        f"{d}. {lost} trainings diverged."
    )
