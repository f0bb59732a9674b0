"""The figure of `heads_per_layer`, drawn from its result alone."""

import numpy as np

from experiments.heads.heads_per_layer.config import STYLES, depths
from experiments.models.specs import restored
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    models, task = depths(config), depths(config)[0][1].task
    picture, axes = style.figure(3.4 * (len(models) + 1), 4.4, (1, len(models) + 1))
    shots = dataset.shots.values
    scale = shots / task.noise_std**2
    for ax, (name, _) in zip(axes, models, strict=False):
        for rule, dashes in STYLES.items():
            risks = dataset.rule_risk.sel(rule=rule).values
            style.line(ax, shots, scale * risks, rule, "grey", dashes)
        architectures = dataset[f"heads, {name}"].values
        for i, heads in enumerate(architectures):
            runs = dataset[f"risk, {name}"].sel({f"heads, {name}": heads}).transpose("seed", ...)
            x = shots * 1.045 ** (i - (len(architectures) - 1) / 2)
            colour, marker = (kinds[i % 6] for kinds in (style.COLOURS, style.MARKERS))
            style.band(ax, x, scale[None] * runs.values, heads, colour, marker)
        style.log_axes(ax, x=True, ticks=shots)
        ax.set(xlabel="demonstrations n", ylabel="n × excess risk / σ²", ylim=(0, 2 * task.d))
        ax.set_title(f"{name} layers".replace("depth ", ""))
        ax.legend(ncols=2, loc="upper right")
    _draw_training(axes[-1], dataset, config)
    style.caption(picture, _caption(dataset, config))
    return picture


def _draw_training(ax, dataset, config):
    """The full architecture's loss, as a share of its training."""
    for i, (name, spec) in enumerate(config.models):
        variants, total = spec.architecture.variants, spec.training.steps
        losses = dataset[f"loss, {name}"].values
        steps = (np.arange(losses.shape[-1]) + 0.5) / losses.shape[-1] * total
        for a, dashes in ((0, ":"), (-1, "-")) if len(losses) > 1 else ((-1, "-"),):
            heads = ",".join(map(str, variants[a]))
            label = f"{heads}, {total / 1000:g} 000 steps"
            middle = np.nanmedian(losses[a], axis=0)
            style.line(ax, steps, middle, label, style.COLOURS[i % 6], dashes)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="training step", ylabel="training loss, median of seeds")
    ax.set_title("training")
    ax.legend(loc="upper right")


def _caption(dataset, config) -> str:
    shares, models = [], depths(config)
    for name, _ in models:
        means = dataset[f"risk, {name}"].sel(shots=config.judged).mean("seed").values
        of_rules = dataset.rule_risk.sel(shots=config.judged)
        bayes, best = (float(of_rules.sel(rule=r)) for r in ("sparse Bayes", "ridge"))
        shares.append(
            f"{name}: {means[0] / best:.2f} of ridge's risk with single heads, "
            f"{means[-1] / bayes:.2f} times the sparse Bayes rule's with all"
        )
    lost = sum(
        int((dataset[f"taken, {name}"] < spec.training.steps).sum()) for name, spec in models
    )
    task, training = restored(models[0][1]).task, models[0][1].training
    return (
        f"Heads in each layer, and excess risk; at n = {config.judged}, {'; '.join(shares)}. "
        "Rules that ignore directions approach d on this scale, sparse ones s. "
        f"Points: median of {training.seeds} seeds and the middle 80 % of them. No rule that "
        "ignores directions can be below the dashed line. Linear attention, d = "
        f"{task.d}, s = {task.sparsity}, σ = {task.noise_std:g}, prompts in units of their "
        f"own, trained on n = {', '.join(map(str, task.lengths))}; {config.test_prompts} "
        f"prompts; predictions cut at twice the largest label. {lost} of the trainings diverged "
        "and stand at their last finite weights."
    )
