"""The figure of `common_map`, drawn from its result alone."""

import numpy as np

from experiments.descent.common_map.config import MODELS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.6, (1, 3))
    places, lost = np.arange(len(MODELS)), 0
    last, smallest = dataset.isel(layer=-1), np.finfo(float).eps / 10
    for ax, name in zip(axes, ("residual", "query_residual"), strict=False):
        for i, (scale, color) in enumerate(zip(settings.scales, style.COLOURS, strict=False)):
            values = last[name].sel(scale=scale).transpose("run", "model").values
            x = places + 0.2 * (i - (len(settings.scales) - 1) / 2)
            marker = style.MARKERS[i]
            shown = np.maximum(values, smallest)  # an exact zero has no logarithm
            lost += style.band(ax, x, shown, f"weights × {scale:g}", color, marker)
        for criterion in (settings.exact, settings.clear):
            ax.axhline(criterion, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set_xticks(places, list(MODELS), rotation=40, ha="right", rotation_mode="anchor")
        ax.set_ylabel("|H - H₀Wᵀ| / |H|, last layer")
    axes[0].set_title("tokens of a prompt")
    axes[1].set_title("queries, same demonstrations")
    axes[0].legend()
    ax, middle = axes[2], dataset.isel(scale=dataset.sizes["scale"] // 2)
    inexact = [name for name in MODELS if name not in ("linear", "linear, query a key")]
    for i, name in enumerate(inexact):
        x = dataset.layer.values + 0.08 * (i - (len(inexact) - 1) / 2)
        values = middle.unexplained.sel(model=name).transpose("run", "layer").values
        lost += style.band(ax, x, values, name, style.COLOURS[i], style.MARKERS[i])
    ax.set(xlabel="layer", ylabel="share of h - h₀ not explained", ylim=(0, None))
    ax.set_xticks(dataset.layer.values)
    ax.set_title(f"tokens of a prompt, weights × {float(middle.scale):g}")
    ax.set_ylim(top=1.55 * ax.get_ylim()[1])
    ax.legend(ncols=2)
    linear, other = (float(last.residual.sel(model=m).median()) for m in ("linear", "softmax"))
    style.caption(
        drawn,
        f"What the best single matrix per layer misses, for the same random weights: {linear:.0e} "
        f"in masked linear attention, {other:.2g} with softmax (median). Median of {settings.runs} "
        f"draws and the middle 80 % of them; {lost} left out as not finite. d = {settings.d}, "
        f"n = {settings.n}. Dashed: at most {settings.exact:g} counts as a common map, at least "
        f"{settings.clear:g} as none.",
    )
    return drawn
