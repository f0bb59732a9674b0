"""Every rule's risk along each axis, what is left over the rate, and the slopes that are judged."""

import numpy as np

from experiments.heads.risk_rates import claims
from experiments.heads.risk_rates.claims import left_over, slopes
from experiments.heads.risk_rates.config import (
    DESCENT,
    LASSO,
    ORACLE,
    PREPROCESSED,
    RIDGE,
    SQUARES,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LINES = {SQUARES: ":", ORACLE: ":", RIDGE: "-", DESCENT: "--", PREPROCESSED: "-", LASSO: "-"}
AXES = {"n": "demonstrations n", "s": "non-zeros s", "d": "covariates d"}
LEFT = {"by_n": ("n", "o"), "short_by_s": ("s", "s"), "short_by_d": ("d", "^")}
JUDGED = (  # the rows, from the top
    *("preprocessed_n", "preprocessed_s", "preprocessed_d"),
    *("directionless_n", "directionless_s", "directionless_d"),
    *("lasso_n", "lasso_s", "lasso_d", "left_n", "left_s", "left_d"),
)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 3.0), ((1, 1, 1), (1, 1.2)))
    config = results.config_of(dataset)
    for ax, (panel, axis) in zip(axes, (("by_n", "n"), ("by_s", "s"), ("by_d", "d")), strict=False):
        along(ax, dataset, panel, axis, config)
    axes[0].set_title("against n")
    axes[1].set_title(f"against s, n = {config.lengths[-1]}")
    axes[2].set_title(f"against d, n = {config.lengths[-1]}")
    plot_left(axes[3], dataset, config)
    plot_judged(axes[4], dataset)
    return figure


def look(rule: str) -> dict:
    return style.METHOD.get(rule, {"color": "grey", "marker": None})


def along(ax, dataset, panel, axis, config):
    """n excess / σ², which tends to a number of coordinates."""
    n = dataset.n if axis == "n" else config.lengths[-1]
    style.log_axes(ax, x=True, y=True)
    x = dataset[axis].values
    for rule, dashes in LINES.items():
        runs = (dataset[panel].sel(rule=rule) * n / config.noise_var).transpose("run", axis).values
        style.mean_band(ax, x, runs, None, **look(rule), style=dashes)
    ticks = x[:: 1 + len(x) // 5]
    style.log_axes(ax, x=True, ticks=ticks)
    ax.set(xlabel=AXES[axis])
    if axis == "n":
        ax.set(ylabel="n · excess risk / σ²", ylim=(config.s / 2, None))
        name_lines(ax, dataset[panel] * n / config.noise_var, x)


def name_lines(ax, risks, x):
    """Each rule's name beside its line; the last two are one where prompts are long."""
    places = {SQUARES: (1, 4, 6), DESCENT: (5, 0, 3), RIDGE: (1, 0, -4), LASSO: (2, 1, 4)}
    places |= {PREPROCESSED: (1, 4, 2), ORACLE: (0, 1, -3)}
    for rule, (place, *aside) in places.items():
        place = min(place, len(x) - 1)
        risk = float(risks.sel(rule=rule).isel(n=place).mean())
        direct_label(ax, x[place], risk, rule, look(rule)["color"], aside)


def plot_left(ax, dataset, config):
    """What preprocessed descent loses beyond the least squares of who knows the support."""
    style.log_axes(ax, x=True, y=True)
    color = look(PREPROCESSED)["color"]
    for panel, (axis, marker) in LEFT.items():
        left = left_over(dataset[panel]).transpose("run", axis) / config.noise_var
        if axis == "n":
            left = left.isel(n=(dataset.n <= config.short).values)
        x, factor = left[axis].values, left.n if axis == "n" else config.middle
        grown = x / getattr(config, axis if axis != "n" else "middle")
        runs = (left * factor).values
        style.mean_points(ax, grown, runs, fmt=marker, color=color, mfc="white", capsize=2, ls="-")
        direct_label(ax, grown[-1], runs[:, -1].mean(), axis, color, (5, 0))
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2))
    ax.set(xlabel=f"n / {config.middle}, s / {config.s}, d / {config.d}")
    ax.set(ylabel="n · (risk - oracle's) / σ²", title="left over s/n, short prompts")


def plot_judged(ax, dataset):
    judged_panel.rows(ax, *evidence(claims, dataset), (-3, 3.2), JUDGED)
    ax.set(xlabel="slope of log risk", title="what is judged")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    rates = {id: round(float(np.mean(runs)), 2) + 0.0 for id, runs in samples.items()}
    mine = "n^{preprocessed_n:.2f} s^{preprocessed_s:.2f} d^{preprocessed_d:.2f}".format(**rates)
    descent = "n^{directionless_n:.2f} s^{directionless_s:.2f} d^{directionless_d:.2f}"
    left = "n^{left_n:.1f} s^{left_s:.1f} d^{left_d:.1f}".format(**rates)
    last = float(slopes(left_over(dataset.short_by_s.isel(s=slice(-2, None)))).mean())
    return (
        f"Preprocessed descent pays for non-zeros, descent for covariates: their risks go like "
        f"{mine} and {descent.format(**rates)}. What preprocessed descent loses beyond least "
        f"squares on the support goes like {left} "
        f"(d; s^{last:.1f} between the two largest s). "
        f"Flat non-zeros, noise variance {config.noise_var:g}, d = {config.d} and s = {config.s} "
        "where they do not grow; numbers of steps, of size 1/λ_max of each prompt, and penalties "
        "are the best on other prompts. Dotted: least squares, on all covariates and on the "
        f"support. Means over {config.runs * config.prompts} prompts in "
        f"{config.runs} runs, {level()} intervals; slopes by the jackknife. e: {judged_panel.KEY}."
    )
