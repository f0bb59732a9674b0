"""The effect of a new order on the predictions of each layer, and what it is compared with."""

import numpy as np

from experiments.descent.order.claims import samples
from experiments.descent.order.config import KINDS, MASKS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(8.0, 3.4, (1, 2))
    smallest = np.finfo(float).eps / 10
    for i, (kind, color) in enumerate(zip(KINDS, style.COLOURS, strict=False)):
        for mask, marker in zip(MASKS, style.MARKERS, strict=False):
            runs = dataset.sel(kind=kind, mask=mask).transpose("run", "depth")
            x = dataset.depth.values + 0.08 * (i - 1)
            effect = np.maximum(runs.effect, smallest)  # an exact zero has no logarithm
            style.band(axes[0], x, effect, f"{kind}, {mask}", color, marker)
            if mask == "causal":
                style.band(axes[1], x, runs.share, kind, color, marker)
    axes[0].axhspan(smallest, config.exact, color="grey", alpha=0.12, lw=0)
    axes[0].axhline(config.clear, color="grey", lw=0.8, ls="--")
    axes[0].set_ylim(smallest, None)
    style.log_axes(axes[0], y=True)
    axes[0].set(ylabel="largest change / size of predictions")
    axes[0].set_title("effect of a new order")
    axes[1].set(ylabel="spread over orders / over other draws")
    axes[1].set_title("causal: against other demonstrations")
    for ax in axes:
        ax.set(xlabel="layers", xticks=dataset.depth.values)
    axes[0].legend(ncols=2, loc="center", bbox_to_anchor=(0.55, 0.46))
    axes[1].legend()
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    share = dataset.share.sel(mask="causal").isel(depth=-1).median("run")
    free, single = (samples(dataset)[name].mean() for name in ("free", "one_causal_layer"))
    missing = style.missing(dataset.effect) + style.missing(dataset.share.sel(mask="causal"))
    return (
        f"It matters only for causal models of two layers or more: one causal layer does not see "
        f"the order. With {config.depth} causal layers a new order spreads predictions "
        f"{float(share.min()):.2g} to {float(share.max()):.2g} times as much as other "
        f"demonstrations do; without a causal mask it changes them by {free:.0e}. In one causal "
        f"layer the change is {single:.0e} (shaded: below {config.exact:g}, rounding; dashed: what "
        f"counts as an effect). The other demonstrations are of the same task. Median of "
        f"{config.runs} runs and the middle 80 % of them; {missing} left out as not finite. "
        f"d = {config.d}, n = {config.n}."
    )
