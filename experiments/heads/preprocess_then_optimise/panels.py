"""The panels of `preprocess_then_optimise`. Each returns how many numbers it leaves out."""

import numpy as np

from experiments.heads.preprocess_then_optimise.learned_features import MODELS, READ
from lsa_lab.harness import style

LOOK = {  # of a rule, wherever it is drawn
    "preprocessed": (style.COLOURS[1], "s", "x̃ = Rx, one size for all prompts"),
    "raw": (style.BLACK, "o", "raw covariates"),
    "mixed": (style.COLOURS[4], "v", "α I + β R²"),
    "own step": (style.COLOURS[2], "D", "x̃, each prompt its own size"),
    "normalised": (style.COLOURS[0], "^", "R / |R|"),
    "mixed, normalised": (style.COLOURS[3], "P", "α I + β R² / |R|²"),
}


def level(ax, samples, text, where=1.0):
    """A reference at the median of its runs, named at the right end or, at 0, the left one."""
    value = float(np.median(samples))
    ax.axhline(value, color="grey", lw=0.8, ls=":", zorder=0)
    place = ax.get_yaxis_transform()
    side = "left" if where < 0.5 else "right"
    ax.text(where, value, text, transform=place, fontsize=6, color="dimgrey", ha=side, va="bottom")


def levels(ax, risks, rules, where=1.0):
    for rule in rules:
        level(ax, risks.sel(reference=rule), rule, where)


def few_steps(ax, dataset):
    lost, depths = 0, dataset.depth.values
    shown = [rule for rule in LOOK if rule in dataset.tuned.values]
    for i, rule in enumerate(shown):
        color, marker, label = LOOK[rule]
        x = depths + 0.1 * (i - 2)
        lost += style.band(ax, x, dataset.fitted.sel(tuned=rule), label, color, marker)
    levels(ax, dataset.of_rule, ["ridge"])
    style.log_axes(ax, y=True)
    ax.set(xlabel="steps", ylabel="excess risk", xticks=depths, xlim=(0.5, depths[-1] + 0.9))
    ax.set_ylim(0.25 * float(dataset.of_rule.sel(reference="ridge").median()), None)
    ax.set_title("a few steps, each of its own size")
    ax.legend(loc="lower left")
    return lost


def many_steps(ax, risks, t):
    lost = 0
    for rule in (rule for rule in LOOK if rule in risks.rule.values):
        color, _, label = LOOK[rule]
        lost += style.band(ax, t.values, risks.sel(rule=rule), label, color, None)
    log_steps(ax, t)
    return lost


def log_steps(ax, t):
    ticks = [count for count in t.values if count in 4 ** np.arange(9)]
    style.log_axes(ax, x=True, y=True, ticks=ticks)
    ax.set(xlabel="steps")


def by_heads(ax, dataset):
    lost, heads = 0, [str(count) for count in dataset.heads.values]
    fewer = ("#B0B0B0", style.COLOURS[5], style.COLOURS[0]) * len(heads)
    colors = (style.BLACK, *fewer[: len(heads) - 1], style.COLOURS[2])
    for used, color in zip(("raw", *heads), colors, strict=True):
        label = LOOK["raw"][2] if used == "raw" else f"x̃ of {used} head" + "s" * (used != "1")
        runs = dataset.by_heads.sel(used=used)
        lost += style.band(ax, dataset.t.values, runs, label, color, None)
    levels(ax, dataset.of_rule, ["ridge"], 0.01)
    log_steps(ax, dataset.t)
    ax.set(ylabel="excess risk")
    ax.set_title("fewer heads than covariates")
    ax.set_ylim(None, 4 * float(dataset.by_heads.isel(t=0).median("run").max()))
    ax.legend(loc="upper center", ncols=2)
    return lost


def learned(ax, dataset):
    lost, t = 0, dataset.step[1:]
    names = dict(zip(dataset.model.values, dataset.architecture.values, strict=True))
    shown = ("shuffled labels", "raw", *names, "preprocessed")
    colors = ("#B0B0B0", style.BLACK, *style.COLOURS[3:6], style.COLOURS[2])
    for feature, color in zip(shown, colors, strict=True):
        label = {"raw": LOOK["raw"][2], "preprocessed": "x̃ = Rx"}.get(feature, feature)
        label = f"tokens of {names[feature]}" if feature in names else label
        label = f"{names[MODELS[-1]]}, labels shuffled" if "shuffled" in feature else label
        runs = dataset.learned.sel(features=feature, step=t)
        lost += style.band(ax, t.values, runs, label, color, None)
    levels(ax, dataset.of_reference, ("ridge", "Lasso", "sparse Bayes"))
    log_steps(ax, t)
    ax.set(ylabel="excess risk")
    ax.set_title("layer 1 of trained models")
    ax.legend(loc="upper right")
    return lost


def reached(ax, dataset):
    """At their best: descent on features, models, and the rules that know the law."""
    best, models, lost = dataset.learned_best, list(dataset.model.values), 0
    rows = ["raw", "preprocessed", *models]
    later = best.sel(features=[f"{name}{READ[2]}" for name in models])
    kinds = (
        ("step sizes fitted, as many layers", rows[:2], dataset.of_fitted, "D", style.COLOURS[3]),
        ("descent, best step; tokens: of layer 1", rows, best.sel(features=rows), "o", style.BLACK),
        ("descent on what the last layer reads", models, later, "^", style.COLOURS[0]),
        ("the model itself", models, dataset.of_model, "s", style.COLOURS[1]),
    )
    for i, (label, names, runs, marker, color) in enumerate(kinds):
        y = np.array([rows.index(name) for name in names]) + 0.17 * (i - 1.5)
        values = runs.transpose("seed", ...).values
        low, mid, high = np.quantile(values, [*style.QUANTILES, 0.5], axis=0)[[0, 2, 1]]
        ax.errorbar(mid, y, xerr=[mid - low, high - mid], fmt=marker, color=color, label=label)
        lost += int(np.sum(~np.isfinite(values)))
    for rule in dataset.reference.values:
        value = float(dataset.of_reference.sel(reference=rule).median())
        ax.axvline(value, color="grey", lw=0.8, ls=":", zorder=0)
        text = rule.removeprefix("rotation-")
        look = dict(rotation=90, fontsize=6, color="dimgrey", ha="right", va="bottom")
        ax.text(value, len(rows) + 0.95, text, **look)
    texts = ["raw", "x̃ = Rx", *(f"model {heads}" for heads in dataset.architecture.values)]
    ax.set_yticks(np.arange(len(rows)), texts)
    ax.set_ylim(len(rows) + 1.1, -2.6)
    style.log_axes(ax, x=True, ticks=(0.02, 0.05, 0.1))
    ax.set(xlabel="excess risk")
    ax.set_title("what is reached")
    ax.legend(loc="upper left")
    return lost
