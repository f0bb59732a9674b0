"""What the best common map of every model misses, and how much of the tokens' move that is."""

import numpy as np

from experiments.descent.common_map import claims
from experiments.descent.common_map.config import MODELS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

MISSED = "|H - H₀Wᵀ| / |H|"
ROUNDING = 1e-10  # a residual up to this is none


def plot(dataset):
    config, last = results.config_of(dataset), dataset.isel(layer=-1)
    figure, axes = style.figure(6.75, 3.4, (1, 2))
    rows(axes[0], last.residual.transpose("run", "model", "scale"))
    name_scales(axes[0], last.residual.sel(model="linear, causal").median("run"))
    rows(axes[1], middle_scale(dataset).unexplained.transpose("run", "model", "layer"))
    axes[0].set_yticks(range(len(MODELS)), list(MODELS), fontsize=7)
    axes[0].set(title="Softmax has no common map", xlabel=f"{MISSED}, last layer")
    axes[1].set(title="Six miss 30 % or more of the change")
    axes[1].set_xlabel(f"missed share of h - h₀, layers 1 to {config.layers}")
    return figure


def rows(ax, values):  # [run, model, steps]
    """A row for each model, with larger marks for later steps; what is rounding is a number."""
    count = values.shape[2]
    for i, name in enumerate(MODELS):
        low, middle, high = np.nanquantile(values[:, i], (0.1, 0.5, 0.9), axis=0)
        y, look = i + 0.5 * (np.arange(count) / max(count - 1, 1) - 0.5), style.METHOD[name]
        if middle.max() <= ROUNDING:
            ax.plot(0, i, ls="", clip_on=False, ms=4.5, **look)
            direct_label(ax, 0, i, f"{middle.max():.0e}", look["color"], (7, 0))
            continue
        for j, size in enumerate(np.linspace(3, 5.5, count)):
            ax.plot([low[j], high[j]], [y[j], y[j]], color=look["color"], lw=0.8)
            ax.plot(middle[j], y[j], ls="", ms=size, clip_on=False, **look)
    ax.set(xlim=(-0.02, 0.9), ylim=(len(MODELS) - 0.5, -0.6), yticks=range(len(MODELS)))
    ax.set_yticklabels([])


def name_scales(ax, middle):  # [scale]
    """The scales of the weights above one model's marks."""
    row = list(MODELS).index(middle.model.item()) - 0.3
    for i, (scale, x) in enumerate(zip(middle.scale.values, middle.values, strict=True)):
        text = f"× {scale:g}" if i else f"weights × {scale:g}"
        direct_label(ax, x, row, text, "dimgrey", (0, 1) if i else (1, 1))


def middle_scale(dataset):
    return dataset.isel(scale=dataset.sizes["scale"] // 2)


def caption(dataset) -> str:
    last = middle_scale(dataset.isel(layer=-1)).residual
    softmax = last.sel(model="softmax").median().item()
    _, samples = evidence(claims, dataset)
    least = [samples[id].mean() for id, cell in claims.CELLS.items() if cell["of"] == "tokens"]
    return (
        "In random stacks softmax, causal masks, norms or MLPs leave a prompt's tokens no common "
        f"map: the best misses at least {min(least):.2g} to {max(least):.2g} of the "
        f"stream. At the last layer and usual weights softmax misses {softmax:.2g}. Linear "
        "attention without the mask has one by a theorem; a query that is a key changes it. "
        "Larger marks are larger weights in a, later layers in b. Bars are the middle 80 %."
    )
