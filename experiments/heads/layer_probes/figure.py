"""The figure of `layer_probes`, drawn from its result alone."""

import numpy as np

from experiments.heads.layer_probes import panels
from experiments.heads.layer_probes.claims import last
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    names = list(dataset.case.values)
    shown = [name for name in settings.panels if name in names][:4]
    looked = [name for name in settings.dissected if name in names]
    drawn, axes = style.figure(12.0, 6.6, (2, 4))
    for ax, case in zip(axes, shown, strict=False):
        panels.readers(ax, dataset, case)
    ends = np.array([ax.get_ylim() for ax, _ in zip(axes, shown, strict=False)])
    for ax in axes[: len(shown)]:
        ax.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    for ax, case in zip(axes[4:6], (looked[0], looked[-1]), strict=True):
        panels.descent(ax, dataset, case)
    panels.first_layers(axes[6], dataset, looked)
    panels.held(axes[7], dataset, looked[0])
    axes[0].legend(loc="upper right")
    handles, labels = axes[4].get_legend_handles_labels()
    for ax, part in zip(axes[4:6], (slice(4), slice(4, None)), strict=True):  # one for both
        ax.legend(handles[part], labels[part], loc="upper right")
    pruned = [last(dataset, case) for case in shown]
    ratio = [np.log(r.sel(model="pruned") / r.sel(model="full")).mean() for r in pruned]
    style.caption(
        drawn,
        f"a to d: excess risk of the best linear reader of the query's token after each layer "
        f"(filled) and of the model's own read-out (hollow), n = {settings.n}. After the last "
        f"layer of the pruned model the reader's risk is {np.exp(min(ratio)):.2g} to "
        f"{np.exp(max(ratio)):.2g} times that of the full one. e, f: descent inside each prompt on "
        f"features without the label slot, each token asked as a query (own labels: tokens as they "
        f"stand). g: by the heads of each layer; dashes: one of the d coordinates for each head of "
        f"layer 1; crosses: r_j x_j of other prompts; random: untrained weights. Medians of seeds "
        f"and the middle 80 % of them; trainings that have not finished are left out: "
        f"{int(dataset.lost.sum())}. Our setting, modelled on Chen et al. 2408.04532.",
    )
    return drawn
