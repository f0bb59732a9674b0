"""The figure of `clipping_and_bound`, drawn from its result alone."""

import numpy as np

from experiments.clipping.clipping_and_bound.claims import agreement
from experiments.clipping.clipping_and_bound.config import MEASURED, MODULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 5.2, (2, 3))
    ranks, lost = dataset["rank"].values, 0
    last = settings.depth
    columns = (("trained, layer 1", "", 1), (f"trained, layer {last}", "", last))
    columns = (*columns, ("descent, layer 1", "descent_", 1))
    for i, (text, prefix, layer) in enumerate(columns):
        for j, module in enumerate(MODULES):
            ax = axes[3 * j + i]
            for k, (name, label) in enumerate(MEASURED.items()):
                values = dataset[prefix + name].sel(module=module, layer=layer).values
                values = np.where(values > 0, values, np.nan)
                looks = (label, style.COLOURS[k], style.MARKERS[k])
                lost += style.band(ax, ranks + 0.06 * (k - 2), values / values[:, :1], *looks)
            ax.axhline(1, color="grey", lw=0.8, ls="--")
            style.log_axes(ax, y=ax.get_ylim()[1] > 10)
            ax.set(xlabel="rank kept (0: dropped)", ylabel="of the unclipped", xticks=ranks)
            ax.invert_xaxis()
            ax.set_title(f"{module}, {text}")
    axes[5].legend(loc="upper left")
    risk, gap = (agreement(dataset.bound, dataset[name]).mean((0, 1)) for name in ("risk", "gap"))
    left_out = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"Clipping more, from left to right. The rank correlation of the bound with the risk is "
        f"{risk[0]:.2f} where trained stacks are clipped in layer 1 and {risk[-1]:.2f} in layer "
        f"{last}; with the generalisation gap {gap[0]:.2f} and {gap[-1]:.2f}. Losses are clipped "
        f"at {settings.largest_loss:g}; C = cI with c = {settings.update_noise:g}, which is free: "
        f"implicit descent has no noise of its own, n = "
        f"{settings.n} is small and the weights come from pretraining. Median of "
        f"{dataset.sizes['run']} trained stacks ({left_out} diverged and left out) or "
        f"{dataset.sizes['prompts']} sets of prompts and the middle 80 %; {lost} left out as not "
        f"positive.",
    )
    return drawn
