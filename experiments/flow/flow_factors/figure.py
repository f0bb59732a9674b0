"""The figure of `flow_factors`, drawn from its result alone."""

import numpy as np

from experiments.flow.flow_factors.config import FORMS, QUANTITIES, SCALES, STEPS
from experiments.flow.flow_factors.one_shot import (
    KINDS,
    PREDICTORS,
    ZEROS,
    best_step,
)
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 6.0, (2, 3))
    best = dataset.sel(step=STEPS[0])
    _draw_maps(drawn, axes[:3], best, settings)
    _draw_forms(axes[3], best)
    _draw_predictors(axes[4], best, settings)
    _draw_kinds(axes[5], best)
    r2 = best.r2.sel(quantity="error reduction", scale="squares").median("run")
    gains = dataset.gain.median("run")
    kept = best.of_kind.sel(measure="flow").median("run").values
    step = best_step(settings)
    style.caption(
        drawn,
        f"What a demonstration contributes is the product s r (red: hyperbolas). Its flow, the "
        f"norm of Eq. 2's Jacobian, is nearly a sum (dashed: Eq. 2 without its cross term): "
        f"{kept[1]:.0%} is left where the demonstration is irrelevant, {kept[2]:.0%} where it is "
        f"learned. The error reduction follows the product (R² {float(r2.sel(form='product')):.2f},"
        f" sum {float(r2.sel(form='sum')):.2f}), but is a mean of gains and losses: "
        f"{1 - float(best.helps.median()):.0%} of the demonstrations raise the error. (a-d): "
        f"deciles of s and r that are not zero, {settings.draws} draws a run. One step of "
        f"{step:.2f} takes {float(gains[0]):.1%} off the error (theory {step / settings.d:.1%}), "
        f"of 1/|x|² {float(gains[1]):.1%}, a unit step {float(gains[2]):.1%}. d = {settings.d}, "
        f"{settings.known} "
        f"coordinates known. Median of {settings.runs} runs and the middle 80 % of them.",
    )
    return drawn


def _draw_maps(drawn, axes, best, settings):
    centres = best.centre.mean("run").values
    shown = None
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        grid = best.grid.sel(quantity=quantity).mean("run").values
        shown = _draw_map(ax, grid, centres, settings)
        ax.set_title(quantity)
    drawn.colorbar(shown, ax=axes[-1], label="root of the mean, relative")


def _draw_map(ax, grid, centres, settings):
    """Colours are roots of cell means, over the largest; lines are products and sums."""
    x, y = centres
    roots = np.sign(grid) * np.sqrt(np.abs(grid))
    levels = np.linspace(0, 1, 11)
    shown = ax.contourf(x, y, roots.T / roots.max(), levels, cmap="YlGnBu")
    ax.set_facecolor("lightgrey")  # below 0
    s = np.linspace(0, x[-1], 200)
    a, b = 1 + settings.known, best_step(settings) ** 2  # E|P|² and E|Kq|²
    for share in (0.1, 0.3, 0.6):
        ax.plot(s[1:], share * x[-1] * y[-1] / s[1:], color=style.COLOURS[1])
        level = share * (a * x[-1] ** 2 + b * y[-1] ** 2)
        inside = s[a * s**2 <= level]
        ax.plot(inside, np.sqrt((level - a * inside**2) / b), "--", color=style.BLACK)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="relevance |s|", ylabel="novelty |r|")
    return shown


def _draw_forms(ax, best):
    x = np.arange(len(QUANTITIES))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            place, there = x + 0.2 * i + 0.08 * j - 0.14, best.r2.sel(form=form, scale=scale)
            color, marker = style.COLOURS[i], style.MARKERS[2 * i + j]
            style.band(ax, place, there.transpose("run", "quantity"), None, color, marker)
            ax.plot([], [], marker, color=color, label=f"{form}, {scale}")
    ax.set_xticks(x, QUANTITIES)
    ax.set(ylabel="R² over the cells", ylim=(None, 1.02))
    ax.set_title("any f(s)·g(r) or f(s) + g(r)")
    ax.legend(loc="lower center")


def _draw_predictors(ax, best, settings):
    x = np.arange(len(PREDICTORS))
    style.band(ax, x, best.correlation.transpose("run", "predictor"))
    ax.axhline(settings.predicts, color="grey", lw=0.8, ls="--")
    names = [name.replace(" + ", "\n+ ") for name in PREDICTORS]
    ax.set_xticks(x, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set(ylabel="rank correlation", ylim=(0, None))
    ax.set_title("what predicts the reduction")


def _draw_kinds(ax, best):
    x = np.arange(len(KINDS))
    for i, name in enumerate(best["measure"].values):
        there = best.of_kind.sel(measure=name).transpose("run", "kind")
        style.band(ax, x + 0.1 * i, there, name, style.COLOURS[i], style.MARKERS[i])
    names = [f"{kind}\n{zeros}" for kind, zeros in zip(KINDS, ZEROS, strict=True)]
    ax.set_xticks(x, names)
    ax.set(ylabel="median, relative to neither")
    ax.set_title("irrelevant or learned")
    ax.legend()
