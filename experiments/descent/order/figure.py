"""The figure of `order`, drawn from its result alone."""

import numpy as np

from experiments.descent.order.config import KINDS, MASKS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(8.0, 3.4, (1, 2))
    lost, smallest = 0, np.finfo(float).eps / 10
    for i, (kind, color) in enumerate(zip(KINDS, style.COLOURS, strict=False)):
        for mask, marker in zip(MASKS, style.MARKERS, strict=False):
            there = dataset.sel(kind=kind, mask=mask).transpose("run", "depth")
            x = dataset.depth.values + 0.08 * (i - 1)
            shown = np.maximum(there.effect, smallest)  # an exact zero has no logarithm
            lost += style.band(axes[0], x, shown, f"{kind}, {mask}", color, marker)
            if mask == "causal":
                lost += style.band(axes[1], x, there.share, kind, color, marker)
    axes[0].axhspan(smallest, settings.exact, color="grey", alpha=0.12, lw=0)
    axes[0].axhline(settings.clear, color="grey", lw=0.8, ls="--")
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
    share = dataset.share.sel(mask="causal").isel(depth=-1).median("run")
    style.caption(
        drawn,
        f"Without a causal mask, and in one causal layer, the order has no effect (shaded: below "
        f"{settings.exact:g}, rounding; dashed: what counts as an effect). With {settings.depth} "
        f"causal layers it spreads predictions {float(share.min()):.2g} to "
        f"{float(share.max()):.2g} times as much as other demonstrations of the same task do. "
        f"Median of {settings.runs} runs and the middle 80 % of them; {lost} left out as not "
        f"finite. d = {settings.d}, n = {settings.n}.",
    )
    return drawn
