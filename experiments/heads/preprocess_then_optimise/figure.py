"""Risks of descent on raw, preprocessed and learned covariates, beside rules that know the task."""

import numpy as np

from experiments.heads.preprocess_then_optimise.claims import (
    in_units_of_noise,
    samples,
    steps_to_win,
)
from experiments.heads.preprocess_then_optimise.config import SHUFFLED
from experiments.heads.preprocess_then_optimise.statements import statements
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

PALE, (BLUE, RED, GREEN, PINK, ORANGE, SKY) = "#B0B0B0", style.COLOURS
LOOKS = {  # of a rule, in every panel
    "preprocessed": (RED, "s", "x̃ = Rx, one size for all prompts"),
    "raw": (style.BLACK, "o", "raw covariates"),
    "mixed": (ORANGE, "v", "α I + β R²"),
    "own step": (GREEN, "D", "x̃, each prompt its own size"),
    "normalised": (BLUE, "^", "R / |R|"),
    "mixed, normalised": (PINK, "P", "α I + β R² / |R|²"),
}
JUDGED = {
    "slow": "x̃, few steps / raw",
    "mixed": "α I + β R² / raw",
    "mixed_gain": "  at most steps",
    "layer_for_layer": "  a step less",
    "mixed_normalised": "α I + β R²/|R|² / raw",
    "normalised_layer_for_layer": "  a step less",
    "best_step": "x̃, best step / ridge",
    "best_step_for_all": "  one size for all",
    "heads": "x̃, d heads / fewer",
    "learned_white": "tokens of all heads / raw",
    "pattern": "of (h, 1, 1) / raw",
    "single": "of one head / raw",
    "shuffled": "labels shuffled / raw",
    "more_heads": "all heads / one head",
    "later_layers": "model / descent on tokens",
    "model": "model / equivariant Bayes",
}


def plot(dataset):
    config, t = results.config_of(dataset), dataset.t.values
    figure, axes = style.figure(10.5, 6.8, (2, 3))
    plot_a_few_steps(axes[0], dataset)
    plot_many_steps(axes[1], dataset.by_step, t)
    mark(axes[1], medians(dataset.of_rule, RIDGE, LASSO, SPARSE_BAYES), 0.01)
    axes[1].set(ylabel="excess risk", title="many steps of one size")
    axes[1].legend()
    plot_many_steps(axes[2], in_units_of_noise(config) * dataset.wide_by_step, t)
    mark(axes[2], {"d": config.wide_d, "s": config.wide_sparsity})
    wide = f"d = {config.wide_d}, s = {config.wide_sparsity}, n = {config.wide_n}"
    axes[2].set(ylabel="n · excess risk / σ²", title=f"as b: {wide}")
    plot_heads(axes[3], dataset)
    plot_learned(axes[4], dataset)
    plot_judged(axes[5], dataset)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    own, shared = (_from(steps_to_win(dataset, rule)) for rule in ("own step", "preprocessed"))
    lines = dataset[["fitted", "by_step", "wide_by_step", "by_heads", "learned"]]
    lost = sum(map(style.missing, lines.values()))
    return (
        f"With a step size for each prompt {own}, with one size for all prompts {shared}. "
        "R = diag(Xᵀy/n); with R normalised in each prompt, and plain descent mixed in, few steps "
        f"suffice. a, b, d: d = {config.d}, s = {config.sparsity}, n = {config.n}, σ² = "
        f"{config.noise_var:g}. Sizes are chosen on other prompts: in a one for each step (α I + "
        "β R² explodes on rare prompts), in b and c one for each number of steps; in d and e half "
        "the largest that converges in the prompt. d: H heads share the coordinates. e: tokens "
        f"that models of {config.models[0][0]} write in layer 1, n = {config.trained_n}, made "
        "white over prompts: else descent would depend on the basis of the stream, which no "
        "prediction shows. The models do more than descend on them. "
        f"f: {judged_panel.KEY}. Elsewhere medians of "
        f"{config.runs} runs of {config.prompts} prompts (c: {config.wide_runs} of "
        f"{config.wide_prompts}; e: {dataset.sizes['seed']} seeds, {int(dataset.diverged)} left "
        "out as diverged) and the "
        f"middle 80 %; {lost} numbers left out as not finite."
    )


def _from(step: int | None) -> str:
    return "at no number of steps" if step is None else f"from step {step} on"


def plot_a_few_steps(ax, dataset):
    """Rules with a size for each step, against the number of steps."""
    depths = dataset.depth.values
    for i, rule in enumerate(rule for rule in LOOKS if rule in dataset.tuned.values):
        color, marker, label = LOOKS[rule]
        runs = dataset.fitted.sel(tuned=rule).transpose("run", "depth")
        style.band(ax, depths + 0.1 * (i - 2), runs, label, color, marker)
    mark(ax, medians(dataset.of_rule, RIDGE))
    style.log_axes(ax, y=True)
    ax.set(xlabel="steps", ylabel="excess risk", xticks=depths, xlim=(0.5, depths[-1] + 0.9))
    ax.set_ylim(0.25 * medians(dataset.of_rule, RIDGE)[RIDGE], None)
    ax.set(title="a few steps, each of its own size")
    ax.legend(loc="lower left")


def plot_many_steps(ax, risks, t):
    rules = [rule for rule in LOOKS if rule in risks.rule.values]
    colors, _, labels = zip(*(LOOKS[rule] for rule in rules), strict=True)
    curves(ax, t, risks.sel(rule=rules), labels, colors)


def plot_heads(ax, dataset):
    """Preprocessed by d heads and by fewer, which share the coordinates."""
    fewer = ((PALE, SKY, BLUE) * len(dataset.heads))[: len(dataset.heads) - 1]
    names = [f"x̃, H = {heads}" for heads in dataset.heads.values]
    labels, colors = (LOOKS["raw"][2], *names), (style.BLACK, *fewer, GREEN)
    curves(ax, dataset.t.values, dataset.by_heads, labels, colors)
    mark(ax, medians(dataset.of_rule, RIDGE), 0.01)
    ax.set(ylabel="excess risk", title="fewer heads than covariates")
    ax.set_ylim(None, 4 * float(dataset.by_heads.isel(t=0).median("run").max()))
    ax.legend(loc="upper center", ncols=2)


def plot_learned(ax, dataset):
    """Descent on what first layers write."""
    steps, heads = dataset.step[1:], dataset.architecture.values
    features = (SHUFFLED, "raw", *dataset.model.values, "preprocessed")
    labels = [f"white tokens of {counts}" for counts in heads]
    labels = (f"{heads[-1]}, labels shuffled", LOOKS["raw"][2], *labels, "x̃ = Rx")
    risks = dataset.learned.sel(features=list(features), step=steps)
    curves(ax, steps.values, risks, labels, (PALE, style.BLACK, PINK, ORANGE, SKY, GREEN))
    mark(ax, medians(dataset.of_reference, RIDGE, LASSO, SPARSE_BAYES))
    ax.set(ylabel="excess risk", title="layer 1 of trained models")
    ax.legend(loc="upper right")


def plot_judged(ax, dataset):
    """Ratios of risks as they are judged."""
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), JUDGED, (0.25, 3))
    ax.set(xlabel="risk / the risk that is named", title="what is judged")


def curves(ax, t, risks, labels, colors):  # [R, labels, len(t)]
    for runs, label, color in zip(risks.values.swapaxes(0, 1), labels, colors, strict=True):
        style.band(ax, t, runs, label, color, None)
    style.log_axes(ax, x=True, y=True, ticks=[steps for steps in t if steps in 4 ** np.arange(9)])
    ax.set(xlabel="steps")


def medians(risks, *rules) -> dict[str, float]:
    return {rule: float(risks.sel(reference=rule).median()) for rule in rules}


def mark(ax, levels: dict[str, float], where=1.0):
    """References, named at the right end or, at 0, at the left one."""
    look = dict(fontsize=6, color="dimgrey", va="bottom", ha="left" if where < 0.5 else "right")
    for name, level in levels.items():
        ax.axhline(level, color="grey", lw=0.8, ls=":", zorder=0)
        ax.text(where, level, name, transform=ax.get_yaxis_transform(), **look)
