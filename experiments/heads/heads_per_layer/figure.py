"""The risks of models by the heads of their layers, among those of rules that know the task."""

import numpy as np

from experiments.heads.heads_per_layer import claims
from experiments.heads.heads_per_layer.config import LONG, depths
from experiments.heads.heads_per_layer.ratios import most_over, risks_of
from experiments.heads.rule_names import RIDGE, RULES, SPARSE_BAYES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

VARIANTS = {"single": ":", "first": "--", "full": "-"}  # variants against n, and in training
LINEAR, DESCENT = style.METHOD["linear"], style.METHOD["descent"]
TRAINED = (LINEAR["color"], style.BLACK, style.METHOD["least squares"]["color"])  # in training


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
    training(axes[3], dataset, config)
    return figure


def appendix(dataset):
    """Every variant against n."""
    models = depths(results.config_of(dataset))[:2]
    figure, axes = style.figure(6.75, 2.9 * len(models), (len(models), 1), first="g")
    for ax, (name, spec) in zip(axes, models, strict=True):
        every_variant(ax, dataset, name, spec)
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
    """What is judged of one model; of the first one, its longer training too."""
    first, *_ = dict(depths(results.config_of(dataset)))
    statements, samples = evidence(claims, dataset)
    cells = [cell for cell in cells_of(statements) if cell.case.get("model", first) == name]
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(ax, cells, samples, (0.25, 2))
    ax.set(xlabel="risk / the risk that is named")
    ax.set_title(f"judged, {spec.architecture.depth} layers")


def against_n(ax, dataset, name: str, spec):
    """Models of one head a layer, of many in the first and of many in all, among the rules."""
    shots, variants = rules_against_n(ax, dataset, name, spec), dataset[f"heads, {name}"].values
    for kind, dashes in VARIANTS.items():
        if (place := spec.architecture.places.get(kind)) is not None:
            runs = variant_over_ridge(dataset, name, place)
            style.mean_points(ax, shots, runs, **LINEAR, ls=dashes, capsize=2)
            direct_label(ax, shots[0], runs[:, 0].mean(), variants[place], LINEAR["color"], (-5, 0))
    ax.set(xlim=(shots[0] / 2, None), title=f"{spec.architecture.depth} layers, every n")


def every_variant(ax, dataset, name: str, spec):
    """All variants of a model, side by side, among the rules."""
    shots, variants = rules_against_n(ax, dataset, name, spec), dataset[f"heads, {name}"].values
    for i, (heads, color) in enumerate(zip(variants, in_order(len(variants)), strict=True)):
        x = shots * 1.03 ** (i - (len(variants) - 1) / 2)
        look = dict(color=color, marker=style.MARKERS[i % 6], ls="none", capsize=2)
        style.mean_points(ax, x, variant_over_ridge(dataset, name, i), heads, **look)
    ax.set_title(f"{spec.architecture.depth} layers")
    ax.legend(loc="lower center", ncols=6)


def in_order(count: int):  # -> [count, 4]
    """Colours of no method."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.85, count))


def variant_over_ridge(dataset, name: str, place: int):  # [S, shots]
    runs = over_ridge(dataset, name)[f"risk, {name}"].isel({f"heads, {name}": place})
    return runs.transpose("seed", "shots").values


def rules_against_n(ax, dataset, name: str, spec):
    over, shots = over_ridge(dataset, name), dataset.shots.values
    curves = {rule: over.rule_risk.sel(rule=rule).values for rule in RULES[1:]}
    curves[f"descent, {spec.architecture.depth} steps"] = over[f"descent, {name}"].values
    for rule, risks in curves.items():
        color = style.METHOD.get(rule, DESCENT)["color"]
        style.line(ax, shots, risks, color=color)
        direct_label(ax, shots[-1], risks[-1], rule, color, (6, 0))
    ax.hlines(1, shots[0], shots[-1], color=style.BLACK, lw=0.8, ls=":", zorder=0)
    style.log_axes(ax, x=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", ylim=(0, None))
    return shots


def training(ax, dataset, config):
    """The loss of the first and of the full variant, for as long as each is trained."""
    for i, (name, spec) in enumerate(config.models):
        variants, total = spec.architecture.variants, spec.training.steps
        losses, color = dataset[f"loss, {name}"].values, TRAINED[i % len(TRAINED)]
        steps = (np.arange(losses.shape[-1]) + 0.5) / losses.shape[-1] * total
        for place, dashes in ((0, ":"), (-1, "-")) if len(losses) > 1 else ((-1, "-"),):
            middle = np.nanmedian(losses[place], axis=0)
            style.line(ax, steps, middle, None, color, dashes)
            end, offset = (-1, (4, 0)) if name == LONG else (0, (-4, min(i, 1)))
            words = ",".join(map(str, variants[place]))
            direct_label(ax, steps[end], middle[end], words, color, offset)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="training step", ylabel="loss, median of seeds", title="training")
    ax.set_xlim(ax.get_xlim()[0] / 6, None)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    models = depths(config)
    risks = [risks_of(dataset, name) for name, _ in models]
    over_bayes = [row["full"].mean() / row[SPARSE_BAYES].mean() for row in risks]
    beaten = [rule for rule in RULES if all(row["full"].mean() < row[rule].mean() for row in risks)]
    later = all(row["first"].mean() > row["later"].mean() for row in risks if "later" in row)
    order = "later layers more than in the first" if later else "the first layer most"
    lost = sum(
        int((dataset[f"taken, {name}"] < spec.training.steps).sum()) for name, spec in models
    )
    task, seeds = models[0][1].task, models[0][1].training.seeds
    longer = "; grey, trained longer" if LONG in dict(config.models) else ""
    having_first = [name for name, spec in models if "first" in spec.architecture.places]
    over = [most_over(dataset, "ridge", name).mean() for name in having_first]
    return (
        f"In {order}: many in layer 1 and one later reach {max(over, default=np.nan):.2f} of "
        f"ridge's risk or less at every n, many everywhere {min(over_bayes):.2f} to "
        f"{max(over_bayes):.2f} times the sparse Bayes rule's. "
        "a, b: heads in each layer, and rules; models with all heads beat "
        f"{' and '.join(beaten[-2:]) or 'no rule'}; none that ignores directions can be below "
        "rotation-equivariant Bayes; descent has a tuned size for each of as many steps as a model "
        "has layers. c: models of one head a layer (dotted), of many in the first (dashed), in all "
        f"(full). d: dotted, one head a layer{longer}. "
        f"e, f: {judged_panel.KEY}; n = {config.judged} if not said. Means of {seeds} seeds and "
        f"their {level()} intervals. Linear attention, d = {task.d}, s = {task.sparsity}, "
        f"σ = {task.noise_std:g}, prompts in units of their own, trained on "
        f"n = {', '.join(map(str, task.lengths))}; {config.test_prompts} prompts; predictions cut "
        f"at twice the largest label. {lost} of the trainings diverged and stand at their last "
        "finite weights. Appendix (g, h): all at every n. Our setting, modelled on A4 (2408.04532)."
    )
