"""Risks of descent on raw and preprocessed covariates, beside rules that know the task."""

import numpy as np

from experiments.heads.looks import levels
from experiments.heads.preprocess_then_optimise import claims
from experiments.heads.preprocess_then_optimise.claims import steps_to_win
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results
from lsa_lab.theory.wishart import rotation_invariant_bound

DESCENT, PREPROCESSED = (style.METHOD[name] for name in ("descent", "preprocessed descent"))
LOOKS = {  # of a rule, in every panel: dashed or open where it is normalised
    "preprocessed": (PREPROCESSED, ":", "x̃, one size"),
    "raw": (DESCENT, "-", "raw"),
    "own step": (PREPROCESSED, "-", "x̃, own size"),
    "normalised": (PREPROCESSED, "--", "R / |R|"),
}
FEATURES = {  # of few heads: fill, line, words
    "alone": (PREPROCESSED["color"], "-", "features alone"),
    "beside raw": ("white", "--", "beside raw covariates"),
}


def plot(dataset):
    figure, (many, heads) = style.figure(6.75, 2.8, (1, 2))
    plot_many_steps(many, dataset.by_step)
    levels(many, medians(dataset.of_rule, RIDGE, LASSO, SPARSE_BAYES))
    many.set(ylabel="excess risk", title="With one step size it wins late")
    plot_heads(heads, dataset)
    heads.set_title("Half the heads are not enough")
    return figure


def appendix(dataset):
    """What fewer heads cost where each prompt has a step size of its own."""
    figure, (ratio, risk) = style.figure(6.75, 2.5, (1, 2), first="c")
    plot_cost(ratio, dataset)
    plot_risk(risk, dataset)
    return figure


def caption(dataset) -> str:
    own, shared = (_start(steps_to_win(dataset, rule)) for rule in ("own step", "preprocessed"))
    samples = evidence(claims, dataset)[1]
    alone, beside = (np.median(samples[name]) for name in ("cost", "cost_beside_raw"))
    return (
        f"Descent on preprocessed covariates wins {own} if step sizes are tuned for each prompt, "
        f"{shared} if one size serves all. Preprocessed x̃ are covariates times their "
        "correlations R with the labels; R / |R| forgets their size. In c fewer heads cost at "
        f"least {alone:.2g} times the risk, {beside:.2g} times beside raw covariates. Bands are "
        "the middle 80 %."
    )


def _start(step: int | None) -> str:
    return "at no number of steps" if step is None else f"from step {step} on"


def plot_many_steps(ax, risks):  # [run, rule, t]
    for rule in (rule for rule in LOOKS if rule in risks.rule.values):
        look, dashes, name = LOOKS[rule]
        offset = {"raw": (-4, 1), "normalised": (-4, -1), "own step": (-4, -1)}.get(rule, (-4, 0))
        curve(ax, risks.t, risks.sel(rule=rule), look["color"], dashes, name, offset)
    steps_axis(ax, risks.t.values, 0.05)  # names are left of the curves


def plot_heads(ax, dataset):
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
    end_labels(ax, ends, colors)


def plot_cost(ax, dataset):
    """The risk of few heads over that with d, as it is judged where it is least."""
    config = results.config_of(dataset)
    plot_features(ax, claims.numbers(dataset).cost_of_fewer())
    ax.axhline(1, color="grey", lw=0.8)
    ax.set_ylim(0, None)
    top, dearer = ax.get_ylim()[1], claims.statements(config)[-1].bounds[0]
    ax.axhspan(dearer, max(top, dearer), color="grey", alpha=0.2, lw=0)
    ax.set(xlabel=f"heads H < d = {config.d}", ylabel=f"excess risk / that with {config.d} heads")
    ax.set(title="Fewer heads cost risk", ylim=(0, top))


def plot_risk(ax, dataset):
    """Descent on the features of H heads, and the least risk of rules that ignore directions."""
    config, risk = results.config_of(dataset), parts.part(dataset, "few_heads").risk
    plot_features(ax, risk)
    noise_var = config.few_heads.noise_std**2
    ridge = rotation_invariant_bound(config.few_heads.n, config.d, noise_var)
    ax.axhline(ridge, color=style.METHOD["ridge"]["color"], lw=1.2)
    direct_label(ax, risk.used.values[-1], ridge, "ridge", style.METHOD["ridge"]["color"], (-2, 3))
    ax.set(xlabel="heads H of the first layer", ylabel="excess risk of descent", ylim=(0, None))
    ax.set_title("With all heads descent beats ridge")


def plot_features(ax, values):  # [features, run, used]
    """Medians by the number of heads, named above their first."""
    used = values.used.values
    for features, (fill, dashes, words) in FEATURES.items():
        runs = values.sel(features=features).transpose("run", "used").values
        style.median_points(ax, used, runs, **PREPROCESSED, mfc=fill, ls=dashes, ms=5, capsize=2)
        direct_label(ax, used[0], np.median(runs[:, 0]), words, PREPROCESSED["color"], (8, 5))
    style.log_axes(ax, x=True, ticks=used)


def curve(ax, t, risks, color, dashes, name, offset):  # [run, t]
    """Median and middle of runs, named where it begins."""
    style.band(ax, t, risks, None, color, None, dashes)
    direct_label(ax, t.values[0], float(risks[:, 0].median()), name, color, offset)


def steps_axis(ax, t, left):
    style.log_axes(ax, x=True, y=True, ticks=[steps for steps in t if steps in 4 ** np.arange(9)])
    ax.set(xlabel="steps", xlim=(left, None))


def medians(risks, *rules) -> dict[str, float]:
    return {rule: float(risks.sel(reference=rule).median()) for rule in rules}
