"""Risks of descent on raw, preprocessed and learned covariates, beside rules that know the task."""

import numpy as np

from experiments.heads.looks import levels
from experiments.heads.preprocess_then_optimise import claims
from experiments.heads.preprocess_then_optimise.config import SHUFFLED
from experiments.heads.preprocess_then_optimise.ratios import in_units_of_noise, steps_to_win
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

DESCENT, MIXED, PREPROCESSED = (
    style.METHOD[name] for name in ("descent", "preconditioned descent", "preprocessed descent")
)
LINEAR, GREY = style.METHOD["linear"], style.METHOD["least squares"]["color"]
LOOKS = {  # of a rule, in every panel: dashed or open where it is normalised
    "preprocessed": (PREPROCESSED, ":", "x̃, one size"),
    "raw": (DESCENT, "-", "raw"),
    "mixed": (MIXED, "-", "α I + β R²"),
    "own step": (PREPROCESSED, "-", "x̃, own size"),
    "normalised": (PREPROCESSED, "--", "R / |R|"),
    "mixed, normalised": (MIXED, "--", "α I + β R² / |R|²"),
}
JUDGED = (  # all rows, from the top
    *("slow", "mixed", "mixed_gain", "layer_for_layer"),
    *("mixed_normalised", "normalised_layer_for_layer", "best_step", "best_step_for_all", "heads"),
    *("learned_white", "pattern", "single", "shuffled", "more_heads", "later_layers", "model"),
    *("plateau", "dense"),
)
SPOKEN_OF = ("slow", "mixed_gain", "mixed_normalised", "best_step", "best_step_for_all", "heads")
SPOKEN_OF += ("learned_white", "single", "later_layers", "model")


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.5, 2.3, 2.4), ((1, 1),) * 3)
    many, wide, few, heads, learned, judged = axes
    of_rules = medians(dataset.of_rule, RIDGE, LASSO, SPARSE_BAYES)
    plot_many_steps(many, dataset.by_step)
    levels(many, of_rules, left=True)
    many.set(
        ylabel="excess risk", title=f"many steps, {_sizes(config.d, config.sparsity, config.n)}"
    )
    plot_many_steps(wide, in_units_of_noise(config) * dataset.wide_by_step)
    levels(wide, {"d": config.wide_d, "s": config.wide_sparsity})
    wide.set(ylabel="n · excess risk / σ²")
    wide.set_title(
        f"many steps, d = {config.wide_d}, s = {config.wide_sparsity}, n = {config.wide_n}"
    )
    plot_a_few_steps(few, dataset)
    plot_heads(heads, dataset)
    plot_learned(learned, dataset)
    plot_judged(judged, dataset, SPOKEN_OF)
    return figure


def appendix(dataset):
    """All rows that are judged."""
    figure, (ax,) = style.figure(5.5, 4.2, first="g")
    plot_judged(ax, dataset, JUDGED)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    own, shared = (_from(steps_to_win(dataset, rule)) for rule in ("own step", "preprocessed"))
    lines = dataset[["fitted", "by_step", "wide_by_step", "by_heads", "learned"]]
    lost = sum(map(style.missing, lines.values()))
    return (
        f"With a step size for each prompt {own}, with one size for all prompts {shared}. a: "
        "descent on raw covariates and on x̃ = Rx, R = diag(Xᵀy/n); "
        "sizes chosen on other prompts for each number of steps. b: a wide task. c: a size for "
        "each step; with R normalised and plain descent mixed in, few steps suffice (α I + β R² "
        "explodes on rare prompts). d, e: half the largest size that converges in the prompt; d: "
        "heads share the coordinates; e: tokens that models with so many heads a layer write in "
        f"layer 1 ({config.models[0][0]}, n = {config.trained_n}), made white over prompts, for no "
        "prediction shows the basis of the stream; the models do more than descend on them. f: "
        f"{judged_panel.KEY}. Medians of {config.runs} runs of {config.prompts} prompts (b: "
        f"{config.wide_runs} of {config.wide_prompts}; e: {dataset.sizes['seed']} seeds, "
        f"{int(dataset.diverged)} left out as diverged) and the middle 80 %; {lost} numbers not "
        f"finite. σ² = {config.noise_var:g}. Appendix (g): all that is judged."
    )


def _sizes(d: int, s: int, n: int) -> str:
    return f"d = {d}, s = {s}, n = {n}"


def _from(step: int | None) -> str:
    return "at no number of steps" if step is None else f"from step {step} on"


def plot_many_steps(ax, risks):  # [run, rule, t]
    for rule in (rule for rule in LOOKS if rule in risks.rule.values):
        look, dashes, name = LOOKS[rule]
        offset = {"raw": (-4, 1), "normalised": (-4, -1), "own step": (-4, -1)}.get(rule, (-4, 0))
        curve(ax, risks.t, risks.sel(rule=rule), look["color"], dashes, name, offset)
    steps_axis(ax, risks.t.values)


def plot_a_few_steps(ax, dataset):
    """Rules with a size for each step, against the number of steps."""
    depths = dataset.depth.values
    for i, rule in enumerate(rule for rule in LOOKS if rule in dataset.tuned.values):
        look, dashes, label = LOOKS[rule]
        runs = dataset.fitted.sel(tuned=rule).transpose("run", "depth")
        style.band(ax, depths + 0.12 * (i - 2), runs, label, look["color"], look["marker"])
        if dashes == "--":
            ax.containers[-1][0].set(mfc="white")
    ridge = medians(dataset.of_rule, RIDGE)
    levels(ax, ridge)
    style.log_axes(ax, y=True)
    ax.set(xlabel="steps", ylabel="excess risk", xticks=depths, xlim=(0.5, depths[-1] + 0.9))
    ax.set(title="a few steps, each of its own size", ylim=(0.15 * ridge[RIDGE], None))
    ax.legend(loc="lower left", ncols=2)


def plot_heads(ax, dataset):
    """Preprocessed by d heads and by fewer, which share the coordinates."""
    *fewer, every = dataset.used.values
    greys = [f"{shade:.2f}" for shade in np.linspace(0.65, 0.35, len(fewer) - 1)]
    colors = (DESCENT["color"], *greys, PREPROCESSED["color"])
    for color, used in zip(colors, (*fewer, every), strict=True):
        name = "raw" if used == "raw" else f"{used} head{'' if used == '1' else 's'}"
        below = -1 if used == every else 0  # of ridge's line
        curve(ax, dataset.t, dataset.by_heads.sel(used=used), color, "-", name, (4, below), -1)
    levels(ax, medians(dataset.of_rule, RIDGE), left=True)
    steps_axis(ax, dataset.t.values, 0.4)
    ax.set(ylabel="excess risk", title="fewer heads than covariates")


def plot_learned(ax, dataset):
    """Descent on what first layers write."""
    single, *more = dataset.architecture.values
    looks = {  # of features
        SHUFFLED: (GREY, "-", "labels shuffled", (-4, 1)),
        "raw": (DESCENT["color"], "-", "raw", (-4, 1)),
        dataset.model.values[0]: (LINEAR["color"], ":", single, (-4, -1)),
        "preprocessed": (PREPROCESSED["color"], "-", "x̃ = Rx", (-4, 0)),
    }
    models = dataset.model.values[1:]
    starts = dataset.learned.sel(features=models, step=1).median("seed").values
    ups = (1, -1) if starts[0] >= starts[1] else (-1, 1)
    for model, heads, dashes, up in zip(models, more, ("--", "-"), ups, strict=True):
        looks[model] = (LINEAR["color"], dashes, heads, (-4, up))
    steps = dataset.step[1:]
    for features, look in looks.items():
        curve(ax, steps, dataset.learned.sel(features=features, step=steps), *look)
    levels(ax, medians(dataset.of_reference, RIDGE, LASSO, SPARSE_BAYES), left=True)
    steps_axis(ax, steps.values, 0.12)
    ax.set(ylabel="excess risk", title="tokens of trained first layers")


def plot_judged(ax, dataset, ids):
    """Ratios of risks as they are judged."""
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.25, 3), ids)
    ax.set(xlabel="risk / the risk that is named", title="what is judged")


def curve(ax, t, risks, color, dashes, name, offset, end=0):  # [run, t]
    """Median and middle of runs, named at one end."""
    style.band(ax, t, risks, None, color, None, dashes)
    direct_label(ax, t.values[end], float(risks[:, end].median()), name, color, offset)


def steps_axis(ax, t, left=0.1):
    style.log_axes(ax, x=True, y=True, ticks=[steps for steps in t if steps in 4 ** np.arange(9)])
    ax.set(xlabel="steps", xlim=(left, None))


def medians(risks, *rules) -> dict[str, float]:
    return {rule: float(risks.sel(reference=rule).median()) for rule in rules}
