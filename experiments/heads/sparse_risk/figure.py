"""Which rules are below the bound of those that ignore directions, by how much, and at which
rates."""

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, SPARSE_BAYES
from experiments.heads.sparse_risk import claims
from experiments.heads.sparse_risk.claims import left_over, over_bound
from experiments.heads.sparse_risk.config import (
    DESCENT,
    ORACLE,
    PREPROCESSED,
    SIGNALS,
    SQUARES,
    STEPS,
    WEIGHTS,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, off_scale
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

OVER = "excess risk / ridge's"
# Rules beside ridge, from the worst to the best; and those of the rates.
LINES = {SQUARES: ":", DESCENT: "-", EQUIVARIANT: "--", PREPROCESSED: "-", LASSO: "-"}
LINES |= {SPARSE_BAYES: "-"}
RATES = {SQUARES: ":", ORACLE: ":", RIDGE: "-", STEPS: "--", PREPROCESSED: "-", LASSO: "-"}
LEFT = {"by_n": ("n", "o"), "short_by_s": ("s", "s"), "short_by_d": ("d", "^")}
# The judged rows, from the top.
ORDERS = ("preprocessed", "noise", "less_sparse", "dense", "gaussian", "flat", "nonlinear")
SLOPES = (
    *("preprocessed_n", "preprocessed_s", "preprocessed_d"),
    *("directionless_n", "directionless_s", "directionless_d"),
    *("lasso_n", "left_n", "left_s", "left_d"),
)


def plot(dataset):
    config, rates = results.config_of(dataset), parts.part(dataset, "rates")
    figure, axes = style.stacked(6.75, (2.3, 2.3, 2.3), ((1, 1),) * 3)
    kinds_of_weights(axes[0], dataset)
    against(axes[1], dataset, "by_n", "n", "demonstrations n")
    axes[1].set_title(f"against n, σ² = {config.noise_var:g}")
    against(axes[2], dataset, "by_s", "s", f"non-zeros s of {config.d}")
    axes[2].set_title(f"against sparsity, n = {config.n}")
    along(axes[3], rates, "n", "demonstrations n")
    axes[3].set(ylabel="n · excess risk / σ²", ylim=(config.rates.s / 2, None))
    axes[3].set_title(f"rates, d = {config.rates.d}, s = {config.rates.s}")
    duel(axes[4], dataset)
    axes[4].set_title(f"who is ahead, d = {config.d}")
    judged_panel.rows(axes[5], *evidence(claims, dataset), (-0.15, 0.6), ORDERS)
    axes[5].set(xlabel="difference of risks / ridge's", title="judged: whose risk is less")
    return figure


def appendix(dataset):
    """The rates against s and d, what is left over them, and the slopes that are judged."""
    rates = parts.part(dataset, "rates")
    figure, axes = style.stacked(6.75, (2.3, 2.6), ((1, 1, 1), (1,)), first="g")
    along(axes[0], rates, "s", "non-zeros s")
    axes[0].set(ylabel="n · excess risk / σ²")
    along(axes[1], rates, "d", "covariates d")
    plot_left(axes[2], rates)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-3, 3.2), SLOPES)
    axes[3].set(xlabel="slope of log risk", title="judged: rates")
    return figure


def look(rule: str) -> dict:
    rule = "descent" if rule == DESCENT else rule
    return style.METHOD.get(rule, {"color": "grey", "marker": None})


def kinds_of_weights(ax, dataset):
    """A row for each rule: filled, open and pale points for the kinds of weights."""
    rules, faces = list(LINES), ({}, {"mfc": "white"}, {"alpha": 0.35})
    for row, rule in enumerate(rules):
        runs = over_bound(dataset, "by_law").sel(rule=rule).transpose("run", "law").values
        for kind, values, face in zip(WEIGHTS, runs.T, faces, strict=True):
            ends = np.ravel(style.mean_ends(values[:, None]))
            ax.plot(ends, [row, row], "-", color=look(rule)["color"])
            point = look(rule) | {"marker": look(rule)["marker"] or "|"}
            ax.plot(values.mean(), row, **point, ls="none", ms=5, **face)
            if rule == SPARSE_BAYES:
                direct_label(ax, values.mean(), row, kind, look(rule)["color"], (3, -5))
    ax.axvline(1, color=style.BLACK, lw=1.2)
    ax.set_yticks(range(len(rules)), rules, fontsize=7)
    ax.set(xlabel=OVER, xlim=(0, 1.7), ylim=(len(rules) - 0.2, -0.6))
    ax.set_title("what each rule loses")
    direct_label(ax, 1, -0.4, "ridge", style.BLACK, (3, 0))


def against(ax, dataset, panel, axis, label):
    """Every rule over the bound, at the places where the rule is to be had."""
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset[axis].values)
    ax.set(xlabel=label, ylabel=OVER, ylim=(0, 2))
    for rule, dashes in LINES.items():
        runs = over_bound(dataset, panel).sel(rule=rule).transpose("run", axis)
        runs = runs.isel({axis: np.isfinite(runs).all("run").values})
        x, means = runs[axis].values, runs.mean("run").values
        style.mean_band(ax, x, runs.values, None, **look(rule), style=dashes)
        off_scale(ax, x, means, look(rule)["color"])
        if panel == "by_n" and rule in (PREPROCESSED, LASSO, SPARSE_BAYES) and len(x):
            direct_label(ax, x[-1], means[-1], rule, look(rule)["color"], (-2, 5))


def along(ax, rates, axis, label):
    """n excess / σ², which tends to a number of coordinates."""
    config = results.config_of(rates)
    n = rates.n if axis == "n" else config.lengths[-1]
    risks, x = rates[f"by_{axis}"] * n / config.noise_var, rates[axis].values
    places = {SQUARES: (1, 4, 6), STEPS: (5, 0, 3), LASSO: (2, 1, 4), PREPROCESSED: (1, 4, 2)}
    for rule, dashes in RATES.items():
        runs = risks.sel(rule=rule).transpose("run", axis).values
        style.mean_band(ax, x, runs, None, **look(rule), style=dashes)
        if axis == "n" and rule in places:
            place, *aside = places[rule]
            place = min(place, len(x) - 1)
            direct_label(ax, x[place], runs.mean(0)[place], rule, look(rule)["color"], aside)
    style.log_axes(ax, x=True, y=True, ticks=x[:: 1 + len(x) // 5])
    ax.set(xlabel=label, title=f"against {axis}, n = {config.lengths[-1]}")


def plot_left(ax, rates):
    """What preprocessed descent loses beyond the least squares of who knows the support."""
    config, color = results.config_of(rates), look(PREPROCESSED)["color"]
    for panel, (axis, marker) in LEFT.items():
        left = left_over(rates[panel]).transpose("run", axis) / config.noise_var
        if axis == "n":
            left = left.isel(n=(rates.n <= config.short).values)
        x, factor = left[axis].values, left.n if axis == "n" else config.middle
        grown = x / getattr(config, axis if axis != "n" else "middle")
        runs = (left * factor).values
        style.mean_points(ax, grown, runs, fmt=marker, color=color, mfc="white", capsize=2, ls="-")
        direct_label(ax, grown[-1], runs[:, -1].mean(), axis, color, (5, 0))
    style.log_axes(ax, x=True, y=True, ticks=(0.25, 0.5, 1, 2))
    ax.set(xlabel=f"n / {config.middle}, s / {config.s}, d / {config.d}")
    ax.set(ylabel="n · (risk - oracle's) / σ²", title="left over s/n")


def duel(ax, dataset):
    """Preprocessed descent over the Lasso, against n."""
    looks = ((None, -6), ("white", 5))
    for signal, name, (face, above) in zip(SIGNALS, WEIGHTS, looks, strict=False):
        both = dataset.long.sel(signal=signal)
        lasso = both.sel(rule=LASSO)
        runs = (both.sel(rule=PREPROCESSED) - lasso) / lasso.mean("run") + 1
        n, values = dataset.length.values, runs.transpose("run", ...).values
        style.mean_band(ax, n, values, None, **look(PREPROCESSED))
        ax.lines[-1].set(mfc=face or look(PREPROCESSED)["color"])
        place = (n[-1], values[:, -1].mean())
        direct_label(ax, *place, name, look(PREPROCESSED)["color"], (0, above))
    ax.axhline(1, color=style.BLACK, lw=1.2)
    style.log_axes(ax, x=True, ticks=dataset.length.values)
    ax.set(xlabel="demonstrations n", ylabel="preprocessed descent / Lasso")


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    risks = over_bound(dataset, "by_law").sel(law="Gaussian").mean("run")
    rules = (PREPROCESSED, LASSO, SPARSE_BAYES, EQUIVARIANT)
    *gain, turned = (f"{100 * float(1 - risks.sel(rule=rule)):.0f} %" for rule in rules)
    s, d = (np.mean(samples[id]) for id in ("preprocessed_s", "directionless_d"))
    return (
        "Rules that see coordinates use sparsity: preprocessed descent, the Lasso and the sparse "
        f"Bayes rule lose {gain[0]}, {gain[1]} and {gain[2]} less than ridge. The best rule that "
        f"commutes with rotations loses {turned} less. Preprocessed descent pays for non-zeros, "
        f"with slope {s:.2f}; descent pays for covariates, with slope {d:.2f}. In a, points are "
        "filled for Gaussian non-zeros, open for flat ones, pale for dense weights. "
        f"Orders have ± {claims.ERRORS:g} standard errors."
    )
