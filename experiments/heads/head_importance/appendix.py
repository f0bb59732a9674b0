"""The two tall panels of `head_importance`: a row for every model."""

import numpy as np

from experiments.heads.head_importance.numbers import counts, depth_of, matters
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval


def everyone(first, later, dataset, settings):
    """Every model, and how many of its heads matter: in the first layer, in each later one."""
    order = np.argsort(_rank(dataset), kind="stable")
    names = [str(dataset.model.values[i]) for i in order]
    for place, i in enumerate(order):
        model, y = dataset.isel(model=int(i)), -place
        found, alive = counts(model), matters(model, settings)
        if not len(found):
            continue
        ratio = float(model.risk.mean() / model.ridge)
        text = "" if np.isnan(ratio) else f"{ratio:.2f}"
        box = dict(facecolor="white", edgecolor="none", pad=1)
        first.text(0.02, y, text, va="center", fontsize=7, color="grey", bbox=box, zorder=5)
        h, typical = float(model.heads.values[0]), counts(model, "effective_of_median").mean(0)
        _row(first, y, found[:, 0] / h, style.COLOURS[0], True, typical[0] / h)
        for layer in range(1, depth_of(model)):
            if model.heads.values[layer] > 1:
                height, color = y + 0.17 * (2.5 - layer), style.COLOURS[layer]
                _row(later, height, found[:, layer], color, alive[layer], typical[layer])
    for ax, bound in ((first, settings.all_matter), (later, settings.one_later)):
        ax.axvline(bound, color="grey", lw=0.8, ls="--")
        ax.set_ylim(-len(order) + 0.4, 1.5)
        for place in range(1, len(order)):
            ax.axhline(0.5 - place, color="0.9", lw=0.5, zorder=0)
    first.text(0.02, 0.75, "risk / ridge's", va="bottom", fontsize=7, color="grey")
    first.set_yticks(-np.arange(len(order)), names)
    later.set_yticks([])
    first.axvspan(settings.all_matter, 1.02, color=style.COLOURS[2], alpha=0.12, lw=0)
    later.axvspan(0.8, settings.one_later, color=style.COLOURS[2], alpha=0.12, lw=0)
    first.set(xlim=(0, 1.02), xlabel="effective heads / h")
    later.set(xlim=(0.8, float(dataset.heads.max()) + 0.3), xlabel="effective heads")
    first.set_title("first layer")
    later.set_title("later layers")
    for layer in range(1, dataset.sizes["layer"]):
        later.plot(
            [],
            [],
            "o",
            color=style.COLOURS[layer],
            label="layer 2" if layer == 1 else str(layer + 1),
        )
    later.legend(
        loc="upper right", ncols=dataset.sizes["layer"], columnspacing=0.8, handletextpad=0
    )


def _rank(dataset) -> list[int]:
    """Families stay together, in the order in which they come."""
    families = list(dict.fromkeys(dataset.family.values))
    return [families.index(name) for name in dataset.family.values]


def _row(ax, y, samples, color, filled, typical):
    low, high = mean_interval(samples)
    middle = samples.mean()
    bar = [[middle - low], [high - middle]] if np.isfinite(low) else None
    face = color if filled else "white"
    ax.errorbar(middle, y, xerr=bar, fmt="o", color=color, mfc=face, capsize=2, elinewidth=0.8)
    ax.plot(typical, y, "x", color=color)
