"""The effect of a new order on the predictions of each layer, and what it is compared with."""

import numpy as np

from experiments.descent.order.config import KINDS, MASKS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 3.4, (1, 2))
    smallest = np.finfo(float).eps / 10
    for i, (kind, color) in enumerate(zip(KINDS, style.COLOURS, strict=False)):
        for mask, marker in zip(MASKS, style.MARKERS, strict=False):
            runs = dataset.sel(kind=kind, mask=mask).transpose("run", "depth")
            x = dataset.depth.values + 0.1 * (i - 1)
            effect = np.maximum(runs.effect, smallest)  # an exact zero has no logarithm
            label = kind if mask == "non-causal" else None
            style.band(axes[0], x, effect, label, color, marker)
            if mask == "causal":
                look = {"fmt": marker, "color": color, "capsize": 2}
                style.mean_points(axes[1], x, runs.share, kind, **look)
    axes[0].axhspan(smallest, config.exact, color="grey", alpha=0.12, lw=0)
    bound = {"color": style.BLACK, "lw": 0.8, "ls": "--", "label": "bound, at two layers"}
    for mask, marker in zip(MASKS, style.MARKERS, strict=False):
        axes[0].plot([], [], marker, color="grey", label=mask)
    axes[0].axhline(config.clear, **bound)
    axes[1].axhline(config.share, **bound)
    axes[0].set_ylim(smallest, None)
    style.log_axes(axes[0], y=True)
    axes[0].set(ylabel="largest change / size of predictions")
    axes[0].set_title("effect of a new order")
    axes[1].set(ylabel="spread over orders / over other draws")
    axes[1].set_title("causal: against other demonstrations")
    for ax in axes:
        ax.set(xlabel="layers", xticks=dataset.depth.values)
    axes[0].legend(ncols=2, loc="center", bbox_to_anchor=(0.5, 0.44), columnspacing=1.0)
    axes[1].legend()
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    causal = dataset.share.sel(mask="causal").mean("run")
    two, last = causal.sel(depth=2), causal.isel(depth=-1)
    free = dataset.effect.sel(mask="non-causal").max().item()
    single = dataset.effect.sel(mask="causal", depth=1).max().item()
    missing = style.missing(dataset.effect) + style.missing(dataset.share.sel(mask="causal"))
    return (
        f"It matters only for causal models of two layers or more: at two a new order spreads "
        f"predictions {float(two.min()):.2g} to {float(two.max()):.2g} times as much as other "
        f"demonstrations do. At {config.depth} layers {float(last.min()):.2g} to "
        f"{float(last.max()):.2g} times. That the order has no effect without causal masks, or on "
        f'one causal layer, is a theorem (docs/theory, "The order of demonstrations"); measured, '
        f"the largest changes are {free:.0e} and {single:.0e} (shaded: below {config.exact:g}, "
        f"rounding). The other demonstrations are of the same task. a: median of {config.runs} "
        f"runs and the middle 80 % of them; b: means with 95 % intervals; {missing} left out as "
        f"not finite. d = {config.d}, n = {config.n}."
    )
