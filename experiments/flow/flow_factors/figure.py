"""Maps over relevance and novelty of what a demonstration does, and what predicts its use."""

import numpy as np

from experiments.flow.flow_factors.config import (
    FORMS,
    KINDS,
    OVER,
    PREDICTORS,
    QUANTITIES,
    SCALES,
    STEPS,
    best_step,
)
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 5.6, (2, 3))
    best = dataset.sel(step=STEPS[0])
    _draw_maps(figure, axes[:3], best, config)
    _draw_forms(axes[3], best)
    _draw_predictors(axes[4], best, config)
    _draw_kinds(axes[5], best)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    best = dataset.sel(step=STEPS[0])
    r2 = best.r2.sel(quantity="error reduction").mean("run")
    product, total, root_product, root_total = (
        float(r2.sel(scale=scale, form=form)) for scale in ("squares", "sizes") for form in FORMS
    )
    gains = [float(gain) for gain in dataset.gain.mean("run")]
    kept = best.of_kind.sel(measure="flow").mean("run")
    irrelevant, learned = (float(kept.sel(kind=kind)) for kind in ("irrelevant", "learned"))
    step = best_step(config)
    return (
        "It is their product, exactly in the answer and nearly in the error it takes off "
        f"(R² {min(product, root_product):.2f} or more, of a sum {max(total, root_total):.2f} or "
        "less); its gradient flow alone is nearer to a sum. "
        "Red: products s r; dashed: Eq. 2 without its cross term, a sum. Of the flow "
        f"{irrelevant:.0%} is left where a demonstration is irrelevant, {learned:.0%} where it is "
        "learned, of its contribution nothing. The error reduction is a mean of gains and losses: "
        f"{1 - float(best.helps.mean()):.0%} of the demonstrations raise the error, and no size "
        "predicts well which; on average over classes it rises with each (e; dashed: the bounds, "
        f"{config.predicts:g} and {config.rises:g}). (a-d): "
        f"deciles of s and r that are not zero, {config.draws} draws a run. One step of {step:.2f} "
        f"takes {gains[0]:.1%} off the error (theory {step / config.d:.1%}), of 1/|x|² "
        f"{gains[1]:.1%}, a unit step {gains[2]:.1%}. d = {config.d}, {config.known} coordinates "
        f"known. Means over {config.runs} runs; bars are their 95 % intervals, where they show."
    )


def _draw_maps(figure, axes, best, config):
    centres = best.centre.mean("run").values
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        grid = best.grid.sel(quantity=quantity).mean("run").values
        filled = _draw_map(ax, grid, centres, config)
        ax.set_title(quantity)
    figure.colorbar(filled, ax=axes[-1], label="root of the mean, relative")


def _draw_map(ax, grid, centres, config):
    """Colours are roots of cell means, over the largest; lines are products and sums."""
    x, y = centres
    roots = np.sign(grid) * np.sqrt(np.abs(grid))
    levels = np.linspace(0, 1, 11)
    filled = ax.contourf(x, y, roots.T / roots.max(), levels, cmap="YlGnBu")
    ax.set_facecolor("lightgrey")  # below 0
    s = np.linspace(0, x[-1], 200)
    a, b = 1 + config.known, best_step(config) ** 2  # E|P|² and E|Kq|²
    for share in (0.1, 0.3, 0.6):
        ax.plot(s[1:], share * x[-1] * y[-1] / s[1:], color=style.COLOURS[1])
        level = share * (a * x[-1] ** 2 + b * y[-1] ** 2)
        inside = s[a * s**2 <= level]
        ax.plot(inside, np.sqrt((level - a * inside**2) / b), "--", color=style.BLACK)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="relevance |s|", ylabel="novelty |r|")
    return filled


def _draw_forms(ax, best):
    x = np.arange(len(QUANTITIES))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            r2 = best.r2.sel(form=form, scale=scale).transpose("run", "quantity")
            look = _look(i, 2 * i + j)
            style.mean_points(ax, x + 0.2 * i + 0.08 * j - 0.14, r2, f"{form}, {scale}", **look)
    ax.set_xticks(x, QUANTITIES)
    ax.set(ylabel="R² over the cells", ylim=(None, 1.02))
    ax.set_title("any f(s)·g(r) or f(s) + g(r)")
    ax.legend(loc="lower center")


def _draw_predictors(ax, best, config):
    x = np.arange(len(PREDICTORS))
    bounds = (config.predicts, config.rises)
    for i, (over, bound) in enumerate(zip(OVER, bounds, strict=True)):
        correlation = best.correlation.sel(over=over).transpose("run", "predictor")
        style.mean_points(ax, x, correlation, f"over {over}", **_look(i, i))
        ax.axhline(bound, color=style.COLOURS[i], lw=0.8, ls="--")
    names = [name.replace(" + ", "\n+ ") for name in PREDICTORS]
    ax.set_xticks(x, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set(ylabel="rank correlation", ylim=(0, 1.05))
    ax.set_title("what predicts the reduction")
    ax.legend(loc="center")


def _draw_kinds(ax, best):
    x = np.arange(len(KINDS))
    for i, measure in enumerate(best["measure"].values):
        medians = best.of_kind.sel(measure=measure).transpose("run", "kind")
        style.mean_points(ax, x + 0.1 * i, medians, measure, **_look(i, i))
    ax.set_xticks(x, [f"{kind}\n{zeros}" for kind, zeros in KINDS.items()])
    ax.set(ylabel="median, relative to neither")
    ax.set_title("irrelevant or learned")
    ax.legend()


def _look(color, marker):
    return {
        "fmt": style.MARKERS[marker],
        "color": style.COLOURS[color],
        "capsize": 2,
        "elinewidth": 0.8,
    }
