"""What a demonstration does, by its relevance and novelty: a product or a sum, and its use."""

import numpy as np

from experiments.flow.flow_factors import claims
from experiments.flow.flow_factors.config import FORMS, SCALES, best_step
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

MAPS = {  # quantity: title
    "contribution": "contribution: product",
    "error reduction": "error: near product",
    "flow": "flow: nearer sum",
}
COLOUR = {"product": style.COLOURS[1], "sum": style.BLACK}
POINTS = {"ls": "none", "capsize": 2, "elinewidth": 0.8}


def plot(dataset):
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    _draw_forms(axes[0], dataset)
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-0.25, 1.05))
    axes[1].set(xlabel="share, correlation or difference", title="what is judged")
    return figure


def appendix(dataset):
    """Products and sums over relevance and novelty."""
    figure, axes = style.figure(6.75, 2.5, (1, 3), "c")
    _draw_maps(figure, axes, dataset, results.config_of(dataset))
    return figure


def caption(dataset) -> str:
    r2 = dataset.r2.sel(quantity="error reduction").mean("run")
    product, total = (
        float(end) for end in (r2.sel(form="product").min(), r2.sel(form="sum").max())
    )
    ours, best = (float(share) for share in dataset.lowers.mean("run"))
    return (
        "What a demonstration takes off the error is nearly its relevance times its novelty: R² is "
        f"{product:.2f} or more, of a sum {total:.2f} or less. Its gradient flow alone is nearer "
        f"to a sum. A relevant and new one lowers the error in {ours:.0%} of cases, for the Bayes "
        f"rule in {best:.0%}. a: means over deciles; open marks are roots of squares. "
        "c-e: orange lines are products, dashed ones Eq. 2 without its cross term."
    )


def _draw_maps(figure, axes, dataset, config):
    centres = dataset.centre.mean("run").values
    for ax, (quantity, title) in zip(axes, MAPS.items(), strict=True):
        grid = dataset.grid.sel(quantity=quantity).mean("run").values
        filled = _draw_map(ax, grid, centres, config)
        ax.set(title=title, xlabel="relevance |s|")
    (_, right), (_, top) = axes[0].get_xlim(), axes[0].get_ylim()
    direct_label(axes[0], right, 0.08 * top, "product", COLOUR["product"], (-3, -1))
    direct_label(axes[0], 0, 0.48 * top, "sum", COLOUR["sum"], (5, 2))
    axes[0].set_ylabel("novelty |r|")
    figure.colorbar(filled, ax=axes, label="root of the mean / largest", pad=0.01, aspect=25)


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
        ax.plot(s[1:], share * x[-1] * y[-1] / s[1:], color=COLOUR["product"])
        height = share * (a * x[-1] ** 2 + b * y[-1] ** 2)
        inside = s[a * s**2 <= height]
        ax.plot(inside, np.sqrt((height - a * inside**2) / b), "--", color=COLOUR["sum"])
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    return filled


def _draw_forms(ax, dataset):
    """Filled: squares; open: their roots."""
    x = np.arange(len(MAPS))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            r2 = dataset.r2.sel(form=form, scale=scale, quantity=list(MAPS)).transpose("run", ...)
            color, beside = COLOUR[form], 0.2 * i + 0.08 * j - 0.14
            look = {"color": color, "marker": "os"[i], "mfc": "white" if j else color, "ms": 4.5}
            style.mean_points(ax, x + beside, r2, **POINTS | look)
            if i or j:
                text = f"{form}, of {scale}" if i else form
                direct_label(ax, beside, float(r2[:, 0].mean()), text, color, (6, 0))
    ax.set_xticks(x, list(MAPS))
    ax.set(ylabel="R² over cells of s and r", ylim=(None, 1.03), title="It helps by a product")
