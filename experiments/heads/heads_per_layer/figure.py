"""The figure of `heads_per_layer`, drawn from its result alone."""

import numpy as np

from experiments.heads.heads_per_layer.compute import _depths, _family, _has_long
from experiments.heads.heads_per_layer.config import _STYLES
from experiments.models.specs import FAMILIES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    names, family = _depths(settings), _family(settings)
    picture, axes = style.figure(3.4 * (len(names) + 1), 4.4, (1, len(names) + 1))
    shots = dataset.shots.values
    scale = shots / family.noise_std**2
    for ax, name in zip(axes, names, strict=False):
        for rule, dashes in _STYLES.items():
            known = dataset.rule_risk.sel(rule=rule).values
            style.line(ax, shots, scale * known, rule, "grey", dashes)
        architectures = dataset[f"heads, {name}"].values
        for i, heads in enumerate(architectures):
            runs = dataset[f"risk, {name}"].sel({f"heads, {name}": heads}).transpose("seed", ...)
            x = shots * 1.045 ** (i - (len(architectures) - 1) / 2)
            colour, marker = (kinds[i % 6] for kinds in (style.COLOURS, style.MARKERS))
            style.band(ax, x, scale[None] * runs.values, heads, colour, marker)
        style.log_axes(ax, x=True, ticks=shots)
        ax.set(xlabel="demonstrations n", ylabel="n × excess risk / σ²", ylim=(0, 2 * family.d))
        ax.set_title(f"{name} layers".replace("depth ", ""))
        ax.legend(ncols=2, loc="upper right")
    _draw_training(axes[-1], dataset, settings)
    style.caption(picture, _caption(dataset, settings, family, names))
    return picture


def _draw_training(ax, dataset, settings):
    """The full architecture's loss, as a share of its training."""
    for i, name in enumerate([*_depths(settings), *_long(settings)]):
        family = FAMILIES[settings.families][name]
        losses = dataset[f"loss, {name}"].values
        steps = (np.arange(losses.shape[-1]) + 0.5) / losses.shape[-1] * family.steps
        for a, dashes in ((0, ":"), (-1, "-")) if len(losses) > 1 else ((-1, "-"),):
            heads = ",".join(map(str, family.architectures[a]))
            label = f"{heads}, {family.steps / 1000:g} 000 steps"
            middle = np.nanmedian(losses[a], axis=0)
            style.line(ax, steps, middle, label, style.COLOURS[i % 6], dashes)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="training step", ylabel="training loss, median of seeds")
    ax.set_title("training")
    ax.legend(loc="upper right")


def _long(settings) -> list[str]:
    return ["long training"] if _has_long(settings) else []


def _caption(dataset, settings, family, names) -> str:
    shares = []
    for name in names:
        means = dataset[f"risk, {name}"].sel(shots=settings.judged).mean("seed").values
        known = dataset.rule_risk.sel(shots=settings.judged)
        bayes, best = (float(known.sel(rule=r)) for r in ("sparse Bayes", "ridge"))
        shares.append(
            f"{name}: {means[0] / best:.2f} of ridge's risk with single heads, "
            f"{means[-1] / bayes:.2f} times the sparse Bayes rule's with all"
        )
    lost = sum(
        int((dataset[f"taken, {n}"] < FAMILIES[settings.families][n].steps).sum()) for n in names
    )
    return (
        f"Heads in each layer, and excess risk; at n = {settings.judged}, {'; '.join(shares)}. "
        "Rules that ignore directions approach d on this scale, sparse ones s. "
        f"Points: median of {family.seeds} seeds and the middle 80 % of them. No rule that ignores "
        "directions can be below the dashed line. Linear attention, d = "
        f"{family.d}, s = {family.sparsity}, σ = {family.noise_std:g}, prompts in units of their "
        f"own, trained on n = {', '.join(map(str, family.lengths))}; {settings.test_prompts} "
        f"prompts; predictions cut at twice the largest label. {lost} of the trainings diverged "
        "and stand at their last finite weights."
    )
