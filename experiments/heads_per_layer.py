"""In which layers do heads help, and which rules do the models then beat?"""

import numpy as np

from experiments import style
from experiments.configs.heads_per_layer import CLAIMS, TIERS, Config
from experiments.configs.sparse_models import FAMILIES
from experiments.parts.sparse_judging import drawn, risks, rule_errors
from experiments.parts.sparse_models import law
from experiments.parts.sparse_training import trained
from lsa_lab import results
from lsa_lab.claims import about_the_mean
from lsa_lab.theory import risk

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

_STYLES = {"ridge": "-", "rotation-equivariant Bayes": "--", "Lasso": "-.", "sparse Bayes": ":"}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    arrays, names = {}, _depths(config)
    family = _family(config)
    tests = [drawn(config, family, n) for n in config.shots]
    for name in [*names, *(["long training"] if _has_long(config) else [])]:
        made = trained(config.families, name, config.retrain, progress)
        arrays[f"risk, {name}"] = (
            (f"heads, {name}", "seed", "shots"),
            np.stack([risks(made, batch) for batch in tests], axis=-1),
        )
        arrays[f"loss, {name}"] = ((f"heads, {name}", "seed", f"block, {name}"), made.loss)
        arrays[f"taken, {name}"] = ((f"heads, {name}", "seed"), made.taken)
    pairs = [(law(family, n), batch) for n, batch in zip(config.shots, tests, strict=True)]
    rules = [[float(rule_errors(rule, *pair).mean()) for pair in pairs] for rule in _STYLES]
    arrays["rule_risk"] = (("rule", "shots"), np.array(rules))
    noise = family.noise_std**2
    bound = [float(risk.rotation_invariant_bound(n, family.d, noise)) for n in config.shots]
    arrays["bound"] = ("shots", np.array(bound))
    coords = {"shots": list(config.shots), "rule": list(_STYLES)}
    for name in names:
        architectures = FAMILIES[config.families][name].architectures
        coords[f"heads, {name}"] = [",".join(map(str, heads)) for heads in architectures]
    return xr.Dataset(arrays, coords)


def _depths(config: Config) -> list[str]:
    """The families that differ in depth alone."""
    return [name for name in FAMILIES[config.families] if name.startswith("depth")]


def _family(config: Config):
    """Of which the task is the same in all."""
    return FAMILIES[config.families][_depths(config)[0]]


def _has_long(config: Config) -> bool:
    return "long training" in FAMILIES[config.families]


def plot(dataset):
    settings = results.settings(dataset)
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


def claims(dataset):
    settings = results.settings(dataset)
    made = []
    for name in _depths(settings):
        family = FAMILIES[settings.families][name]
        measured = dataset[f"risk, {name}"].sel(shots=settings.judged).values  # [A, S]
        known = dataset.rule_risk.sel(shots=settings.judged)
        named = {kind: measured[i] for kind, i in family.named.items()}
        named |= {rule: np.full(family.seeds, float(known.sel(rule=rule))) for rule in _STYLES}
        for what, (source, statement, criterion, (over, under), bounds) in CLAIMS.items():
            if over not in named or under not in named:
                continue
            limits = {side: getattr(settings, bound) for side, bound in bounds.items()}
            said = (source, f"{statement} ({family.depth} layers)")
            criterion = "mean over seeds, " + criterion.format(**vars(settings))
            id = f"heads_per_layer.{what}_{family.depth}"
            made.append(about_the_mean(id, *said, criterion, named[over] / named[under], **limits))
        made.append(_level(dataset, settings, name, family))
    if _has_long(settings):
        made.append(_longer(dataset, settings))
    return made


def _level(dataset, settings, name, family):
    """Whether the training loss has stopped falling."""
    losses = dataset[f"loss, {name}"].values[-1]  # [S, blocks]
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return about_the_mean(
        f"heads_per_layer.stopped_falling_{family.depth}",
        "a check of this experiment",
        f"The full model's loss has stopped falling ({family.depth} layers)",
        "mean over seeds of the loss in the last sixth of the training over the sixth before >= "
        f"{settings.level:g}",
        ratios[np.isfinite(ratios)],
        at_least=settings.level,
    )


def _longer(dataset, settings):
    full, longer = (
        dataset[f"risk, {name}"].sel(shots=settings.judged).values[-1]
        for name in ("depth 3", "long training")
    )
    return about_the_mean(
        "heads_per_layer.long_enough",
        "a check of this experiment",
        "Four times the training lowers the full model's risk by little (3 layers)",
        f"mean over seeds of the risk after it over the risk before >= {settings.longer:g}",
        longer / full,
        at_least=settings.longer,
    )
