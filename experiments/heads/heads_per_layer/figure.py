"""The risks of models by the heads of their layers, among those of rules that know the task."""

import numpy as np

from experiments.heads.heads_per_layer.claims import against_every_n, risks_of, samples
from experiments.heads.heads_per_layer.statements import depths, statements
from experiments.heads.rule_names import RULES, SPARSE_BAYES
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

DASHES = dict(zip(RULES, ("-", "--", "-.", ":"), strict=True))


JUDGED = {  # id without its depth
    "beats_ridge": "(H, 1, …) / ridge, every n",
    "beats_descent": "(H, 1, …) / descent, every n",
    "beats_bound": "full / equivariant Bayes",
    "single_beats_bound": "single / equivariant Bayes",
    "near_bayes": "full / sparse Bayes",
    "more_heads": "full / single",
    "first_layer_helps": "(H, 1, …) / single",
    "first_layer_suffices": "(H, 1, …) / full",
    "first_before_later": "(H, 1, …) / (1, H, …)",
    "stopped_falling": "loss, last sixth / before",
}


def plot(dataset):
    config = results.config_of(dataset)
    models = depths(config)[:2]
    figure, axes = style.figure(3.4 * (len(models) + 1), 6.4, (2, len(models) + 1))
    above, below = axes[: len(axes) // 2], axes[len(axes) // 2 :]
    for ax, under, (name, spec) in zip(above, below, models, strict=False):
        against_n(ax, dataset, name, spec)
        of_depth(under, dataset, spec.architecture.depth)
    training(above[-1], dataset, config)
    below[-1].set_axis_off()
    below[-1].set_title("")
    below[-1].set_title("", loc="left")
    below[-1].legend(*above[0].get_legend_handles_labels(), loc="upper left", title="a (b: alike)")
    return figure


def of_depth(ax, dataset, depth: int):
    """What is judged of the models of one depth."""
    rows, names = statements(results.config_of(dataset)), JUDGED.items()
    ids = {row.id for row in rows}  # without some variants there is less to judge
    labels = {f"{id}_{depth}": name for id, name in names if f"{id}_{depth}" in ids}
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(ax, rows, samples(dataset), labels, (0.25, 2))
    ax.set(xlabel="risk / the risk that is named")
    ax.set_title(f"judged, {depth} layers")


def against_n(ax, dataset, name: str, spec):
    """Every variant of a model, side by side, on the scale on which rules have plateaus."""
    shots, variants = dataset.shots.values, dataset[f"heads, {name}"].values
    scale = shots / spec.task.noise_std**2
    for rule, dashes in DASHES.items():
        style.line(ax, shots, scale * dataset.rule_risk.sel(rule=rule), rule, "grey", dashes)
    descent = f"descent, {spec.architecture.depth} steps"
    style.line(ax, shots, scale * dataset[f"descent, {name}"], descent, style.BLACK, "-")
    for i, heads in enumerate(variants):
        runs = dataset[f"risk, {name}"].sel({f"heads, {name}": heads}).transpose("seed", "shots")
        x = shots * 1.045 ** (i - (len(variants) - 1) / 2)
        look = dict(color=style.COLOURS[i % 6], fmt=style.MARKERS[i % 6], elinewidth=0.8)
        style.mean_points(ax, x, scale * runs.values, heads, capsize=2, **look)
    style.log_axes(ax, x=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="n × excess risk / σ²", ylim=(0, 2 * spec.task.d))
    ax.set_title(f"{spec.architecture.depth} layers")


def training(ax, dataset, config):
    """The loss of the first and of the full variant, for as long as each is trained."""
    for i, (name, spec) in enumerate(config.models):
        variants, total = spec.architecture.variants, spec.training.steps
        losses = dataset[f"loss, {name}"].values
        steps = (np.arange(losses.shape[-1]) + 0.5) / losses.shape[-1] * total
        for place, dashes in ((0, ":"), (-1, "-")) if len(losses) > 1 else ((-1, "-"),):
            label = f"{','.join(map(str, variants[place]))}, {total:_} steps".replace("_", " ")
            middle = np.nanmedian(losses[place], axis=0)
            style.line(ax, steps, middle, label, style.COLOURS[i % 6], dashes)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="training step", ylabel="training loss, median of seeds")
    ax.set_title("training")
    ax.legend(loc="upper right")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    models = depths(config)
    risks = [risks_of(dataset, name, spec) for name, spec in models]
    over_bayes = [row["full"].mean() / row[SPARSE_BAYES].mean() for row in risks]
    beaten = [rule for rule in RULES if all(row["full"].mean() < row[rule].mean() for row in risks)]
    later = all(row["first"].mean() > row["later"].mean() for row in risks if "later" in row)
    order = "later layers more than in the first" if later else "the first layer most"
    lost = sum(
        int((dataset[f"taken, {name}"] < spec.training.steps).sum()) for name, spec in models
    )
    task, seeds = models[0][1].task, models[0][1].training.seeds
    rows = [against_every_n(dataset, name, spec) for name, spec in models]
    over = [runs.mean() for row in rows for id, runs in row.items() if id.startswith("beats_ridge")]
    return (
        f"In {order}: many in layer 1 and one later reach {max(over, default=np.nan):.2f} of "
        f"ridge's risk or less at every n, many everywhere {min(over_bayes):.2f} to "
        f"{max(over_bayes):.2f} times the sparse Bayes rule's. "
        f"a, b: heads in each layer, and excess risk, n × excess / σ²; models with all heads beat "
        f"{' and '.join(beaten[-2:]) or 'no rule'}. Rules that ignore directions approach d on "
        "this scale, sparse ones s; none that ignores them can be below the dashed line. Descent "
        "has a tuned size for each of as many steps as a model has layers. "
        f"d, e: {judged_panel.KEY}; n = {config.judged} if not said. Means of {seeds} seeds and "
        f"their 95 % intervals. Linear "
        f"attention, d = {task.d}, s = {task.sparsity}, σ = {task.noise_std:g}, prompts in units "
        f"of their own, trained on n = {', '.join(map(str, task.lengths))}; {config.test_prompts} "
        f"prompts; predictions cut at twice the largest label. {lost} of the trainings diverged "
        "and stand at their last finite weights. Our setting, modelled on A4 (2408.04532)."
    )
