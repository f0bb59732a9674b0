"""Errors of trained models against shots and training steps, beside known rules; what counts."""

from experiments.descent.shots_and_steps import claims
from experiments.descent.shots_and_steps.claims import ratio_to_bayes, share_left
from experiments.descent.shots_and_steps.config import MODELS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

RIDGE, LEAST_SQUARES = style.METHOD["ridge"]["color"], style.METHOD["least squares"]["color"]
PERCENT = (0.1, 1, 10, 100, 1000)  # of predicting zero
SPAN = (0.1, 3000.0)  # linear attention at few shots is far above any other


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.5, 2.7), ((1, 1), (2, 3)))
    for ax, noise, rule in zip(axes, (0, 1), ("least squares", "Bayes rule"), strict=False):
        shots_points(ax, dataset.isel(noise=noise), rule)
    axes[0].set_title("no noise: error left")
    axes[1].set_title(f"noise {dataset.noise[1].item():g}: error left")
    steps_points(axes[2], dataset.isel(noise=1))
    plot_judged(axes[3], dataset)
    return figure


def shots_points(ax, dataset, rule):
    """Shares of the error of predicting zero, of models and of the best rule."""
    config, shots = results.config_of(dataset), dataset.shots.values
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(ylim=SPAN, xlim=(shots[0] / 1.25, shots[-1] * 1.8))
    best = (100 / config.d * dataset.known.sel(rule=rule).median("run")).round(6)
    if rule == "least squares":
        direct_label(ax, config.d, SPAN[0], "least squares", LEAST_SQUARES, (0, 14))
    else:
        direct_label(ax, shots[0], best[0].item(), "ridge", RIDGE, (0, -4))
    color = LEAST_SQUARES if rule == "least squares" else RIDGE
    style.line(ax, shots, best.where(best > 0), color=color)
    off_scale(ax, shots, best, color, ".1g")
    for name, aside in zip(MODELS, (1 / 1.015, 1.015), strict=True):
        runs = 100 / config.d * dataset.error.sel(model=name).transpose("run", "shots")
        look, middle = style.METHOD[name], runs.median("run")
        style.median_points(ax, aside * shots, runs, ls="", capsize=2, **look)
        off_scale(ax, aside * shots, middle, look["color"], ".1g")
        direct_label(ax, shots[-1], middle[-1].item(), name, look["color"], (6, 0))
        left = middle.sel(shots=2 * config.d).item()
        direct_label(ax, 2 * config.d, left, f"{left:.2g} %", look["color"], (6, 0))
    ax.axvline(config.n, color="grey", lw=0.8, ls="--")
    direct_label(ax, config.n, SPAN[1], "shots in training", "dimgrey", (3, -2))
    ax.set_yticks(PERCENT, [f"{tick:g}" for tick in PERCENT])
    ax.set(xlabel="shots", ylabel="excess risk, % of predicting 0")


def steps_points(ax, dataset):
    config = results.config_of(dataset)
    bayes = dataset.known.sel(rule="Bayes rule", shots=config.n)
    for name in MODELS:
        runs, steps = dataset.learning.sel(model=name) / bayes, dataset.steps.sel(model=name).values
        look, end = style.METHOD[name], runs.isel(look=-1).median().item()
        style.median_points(ax, steps, runs.transpose("run", "look"), ls="", capsize=2, **look)
        direct_label(ax, steps[-1], end, f"{name}: {end:.2g}", look["color"], (6, 0))
    ax.axhline(1, color=RIDGE)
    direct_label(ax, 0, 1, "ridge", RIDGE, (1, 2))
    style.log_axes(ax, y=True)
    ax.set(xlabel="training steps", ylabel="excess risk / ridge's")
    ax.set_title(f"training at {config.n} shots")


def plot_judged(ax, dataset):
    style.log_axes(ax, x=True, ticks=(1e-3, 0.01, 0.1, 1, 10, 100, 1000))
    judged_panel.rows(ax, *evidence(claims, dataset), (1e-3, 1e3))
    ax.set(xlabel="ratio of errors, or share left")
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    left = [100 * share_left(dataset, name, 2).median().item() for name in MODELS]
    ratios = [ratio_to_bayes(dataset, name).median().item() for name in MODELS]
    missing = style.missing(dataset.error) + style.missing(dataset.learning.isel(noise=1))
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    return (
        f"A few shots teach most: at {2 * config.d} = 2d shots {left[0]:.2g} % of the error is "
        f"left in {MODELS[0]} stacks and {left[1]:.2g} % in {MODELS[1]} ones. With noise, training "
        f"ends at {ratios[0]:.2g} and {ratios[1]:.2g} times the Bayes rule's error. Numbers at an "
        f"edge of a and b are medians beyond it: linear layers explode on single prompts of other "
        f"lengths than in training. Panel c has the task with noise. {diverged} of "
        f"{dataset.status.size} trainings diverged; {missing} numbers are not finite."
    )
