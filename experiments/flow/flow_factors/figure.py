"""What a demonstration does, by its relevance and novelty: a product or a sum, and its use."""

import numpy as np

from experiments.flow.flow_factors.config import FORMS, SCALES, best_step
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

QUANTITIES = ("contribution", "error reduction", "flow")
COLOUR = {"product": style.COLOURS[1], "sum": style.BLACK}
POINTS = {"ls": "none", "capsize": 2, "elinewidth": 0.8}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    _draw_forms(axes[0], dataset)
    filled = _draw_map(axes[1], dataset, results.config_of(dataset))
    figure.colorbar(filled, ax=axes[1], label="error reduction, root / largest", aspect=25)
    return figure


def caption(dataset) -> str:
    r2 = dataset.r2.sel(quantity="error reduction").mean("run")
    product, total = (
        float(end) for end in (r2.sel(form="product").min(), r2.sel(form="sum").max())
    )
    ours, best = (float(share) for share in dataset.lowers.mean("run"))
    return (
        "What a demonstration takes off the error is, on average over classes, nearly a product of "
        f"its relevance and its novelty: R² {product:.2f} or more, of a sum at most {total:.2f}. "
        f"The gradient is nearer to a sum. A relevant and new demonstration helps in {ours:.0%} of "
        f"cases, and by the Bayes rule in {best:.0%}. Points in a are means over deciles, open "
        "points those of roots; lines in b are products and sums."
    )


def _draw_map(ax, dataset, config):
    """Colours are roots of cell means, over the largest; lines are products and sums."""
    x, y = dataset.centre.mean("run").values
    grid = dataset.grid.sel(quantity="error reduction").mean("run").values
    roots = np.sign(grid) * np.sqrt(np.abs(grid))
    levels = np.linspace(0, 1, 11)
    filled = ax.contourf(x, y, roots.T / roots.max(), levels, cmap="YlGnBu")
    ax.set_facecolor("lightgrey")  # below 0
    s = np.linspace(0, x[-1], 200)
    a, b = 1 + config.known, best_step(config) ** 2  # E|P|² and E|Kq|²
    for share in (0.1, 0.3, 0.6):
        ax.plot(s[1:], share * x[-1] * y[-1] / s[1:], color=COLOUR["product"])
        height = share * (a * x[-1] ** 2 + b * y[-1] ** 2)
        inside = s[a * s**2 <= height]
        ax.plot(inside, np.sqrt((height - a * inside**2) / b), "--", color=COLOUR["sum"])
    direct_label(ax, x[-1], 0.08 * y[-1], "product", COLOUR["product"], (-3, -1))
    direct_label(ax, x[0], 0.48 * y[-1], "sum", COLOUR["sum"], (5, 2))
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="relevance |s|", ylabel="novelty |r|")
    ax.set_title("Either zero leaves nothing")
    return filled


def _draw_forms(ax, dataset):
    """Filled: squares; open: their roots."""
    x = np.arange(len(QUANTITIES))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            r2 = dataset.r2.sel(form=form, scale=scale, quantity=list(QUANTITIES)).transpose(
                "run", ...
            )
            color, beside = COLOUR[form], 0.2 * i + 0.08 * j - 0.14
            look = {"color": color, "marker": "os"[i], "mfc": "white" if j else color, "ms": 4.5}
            style.mean_points(ax, x + beside, r2, **POINTS | look)
            if i or j:
                text = f"{form}, of {scale}" if i else form
                direct_label(ax, beside, float(r2[:, 0].mean()), text, color, (6, 0))
    ax.set_xticks(x, QUANTITIES)
    ax.set(ylabel="R² over cells of s and r", ylim=(None, 1.03), title="It helps by a product")
