"""Risks of descent on raw and preprocessed covariates, beside rules that know the task."""

import numpy as np

from experiments.heads.looks import levels
from experiments.heads.preprocess_then_optimise.claims import steps_to_win
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels

DESCENT, PREPROCESSED = (style.METHOD[name] for name in ("descent", "preprocessed descent"))
LOOKS = {  # of a rule, in every panel: dashed or open where it is normalised
    "preprocessed": (PREPROCESSED, ":", "x̃, one size"),
    "raw": (DESCENT, "-", "raw"),
    "own step": (PREPROCESSED, "-", "x̃, own size"),
    "normalised": (PREPROCESSED, "--", "R / |R|"),
}


def plot(dataset):
    return style.panels(dataset, 2.8, many_steps, few_heads)


def caption(dataset) -> str:
    own, shared = (_start(steps_to_win(dataset, rule)) for rule in ("own step", "preprocessed"))
    return (
        f"Descent on preprocessed covariates wins {own} if step sizes are tuned for each prompt, "
        f"{shared} if one size serves all. Preprocessed x̃ are covariates times their "
        "correlations R with the labels; R / |R| forgets their size. Bands are the middle 80 %."
    )


def _start(step: int | None) -> str:
    return "at no number of steps" if step is None else f"from step {step} on"


def many_steps(ax, dataset):
    """Medians and middles of runs by the step, named where they begin."""
    risks = dataset.by_step  # (run, rule, t)
    for rule in (rule for rule in LOOKS if rule in risks.rule.values):
        look, dashes, name = LOOKS[rule]
        offset = {"raw": (-4, 1), "normalised": (-4, -1), "own step": (-4, -1)}.get(rule, (-4, 0))
        runs, color = risks.sel(rule=rule), look["color"]
        style.band(ax, risks.t, runs, None, color, None, dashes)
        direct_label(ax, risks.t.values[0], float(runs[:, 0].median()), name, color, offset)
    steps_axis(ax, risks.t.values, 0.05)  # names are left of the curves
    levels(ax, medians(dataset.of_rule, RIDGE, LASSO, SPARSE_BAYES))
    ax.set(ylabel="excess risk", title="With one step size it wins late")


def few_heads(ax, dataset):
    """Preprocessed by d heads and by fewer, which share the coordinates."""
    *fewer, every = dataset.used.values
    greys = [f"{shade:.2f}" for shade in np.linspace(0.65, 0.35, len(fewer) - 1)]
    colors = (DESCENT["color"], *greys, PREPROCESSED["color"])
    ends = {}
    for color, used in zip(colors, (*fewer, every), strict=True):
        name = "raw" if used == "raw" else f"{used} head{'' if used == '1' else 's'}"
        risks = dataset.by_heads.sel(used=used)
        style.band(ax, dataset.t, risks, None, color, None)
        ends[name] = float(risks[:, -1].median())
    levels(ax, medians(dataset.of_rule, RIDGE))
    steps_axis(ax, dataset.t.values, 0.4)
    ax.set(ylabel="excess risk")
    ax.set_yticks((0.05, 0.1, 0.2, 0.5), ("0.05", "0.1", "0.2", "0.5"))
    ax.set_title(f"Constructed, {fewer[-1]} heads are too few")
    end_labels(ax, ends, colors)


def steps_axis(ax, t, left):
    style.log_axes(ax, x=True, y=True, ticks=[steps for steps in t if steps in 4 ** np.arange(9)])
    ax.set(xlabel="steps", xlim=(left, None))


def medians(risks, *rules) -> dict[str, float]:
    return {rule: float(risks.sel(reference=rule).median()) for rule in rules}
