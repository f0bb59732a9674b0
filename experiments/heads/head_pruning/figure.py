"""How many heads matter in a layer, and what it costs to remove heads."""

import numpy as np

from experiments.heads.head_pruning.claims import (
    ONE_LATER,
    count_of,
    exchanged_ratio,
    geometric_mean,
    ratios,
    rises,
)
from experiments.heads.head_pruning.config import (
    ANY,
    FIRST,
    MIXED,
    OTHERS,
    PRUNED,
    TRAINED,
    mixable_and_own,
)
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

LOOKS = {"narrow keys": style.METHOD["linear, narrow keys"], "softmax": style.METHOD["softmax"]}
ROWS = {  # of models whose heads cannot be mixed: what is kept
    PRUNED: "top head of\neach later layer",
    OTHERS: "random head of\neach later layer",
    ANY: "as many heads,\nat random",
    FIRST: "top head of\nlayer 1",
    TRAINED: "one head a later\nlayer, trained so",
}


def plot(dataset):
    own = list(mixable_and_own(results.config_of(dataset).models)[1])
    figure, axes = style.stacked(6.75, (2.7,), ((4, 5),))
    own_heads(axes[0], dataset, own)
    all_treatments(axes[1], dataset, own)
    return figure


def own_heads(ax, dataset, own: list[str]):
    """N_l of each layer of the models, and the heads that A4 says matter there."""
    of_heads = [rises(dataset, name) for name in own]
    counts, h = [count_of(rise) for rise in of_heads], of_heads[0].shape[2]
    depth = max(count.shape[1] for count in counts)
    for layer in range(1, depth + 1):
        low, high = (h - 0.25, h + 0.25) if layer == 1 else (1.0, ONE_LATER)
        ax.bar(layer, high - low, 0.7, low, color="grey", alpha=0.2, lw=0)
    for i, (name, count) in enumerate(zip(own, counts, strict=True)):
        x = np.arange(1, count.shape[1] + 1) + 0.24 * (i - (len(own) - 1) / 2)
        style.mean_points(ax, x, count, label=name, **LOOKS[name], ls="none", capsize=2, ms=5)
        ax.axhline(count.mean(), color=LOOKS[name]["color"], lw=0.8, ls=":", zorder=0)
    direct_label(ax, 0.65, h + 0.25, "A4: all heads", "dimgrey", (1, 2))
    direct_label(ax, 2, ONE_LATER, "A4: one head", "dimgrey", (0, 2))
    ax.set(xlabel="layer", ylabel="effective heads $N_l$", xticks=range(1, depth + 1))
    ax.set(xlim=(0.5, depth + 0.7), ylim=(0.8, h + 0.9))
    ax.set_title("Effective heads by layer")
    ax.legend(loc="upper right")


def all_treatments(ax, dataset, own: list[str]):
    """Geometric means over seeds, with their intervals, a row for each way to choose heads."""
    for i, case in enumerate(own):
        look = LOOKS[case]
        for row, treatment in enumerate(ROWS):
            logs, y = np.log(ratios(dataset, case, treatment)), row + 0.24 * (i - 0.5)
            if len(logs):
                ends = np.exp(np.concatenate(style.mean_ends(logs[:, None])))
                ax.plot(ends, [y, y], "-", color=look["color"])
                label = case if row == 0 else None
                ax.plot(np.exp(logs.mean()), y, **look, ls="none", ms=5, label=label)
    ax.set_yticks(range(len(ROWS)), ROWS.values(), fontsize=7)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel="risk / full model's", ylim=(len(ROWS) - 0.5, -0.5))
    ax.set_title("Pruning without retraining costs risk")
    ax.legend(loc="upper right")


def caption(dataset) -> str:
    names = [name for name, _ in results.config_of(dataset).models]
    own = mixable_and_own(results.config_of(dataset).models)[1]
    pruned, trained, mixed = (
        {
            name: geometric_mean(values)
            for name in names
            if len(values := ratios(dataset, name, treatment))
        }
        for treatment in (PRUNED, TRAINED, MIXED)
    )
    dense = [mixed.pop("dense")] if "dense" in mixed else []
    nulls = ([exchanged_ratio(dataset, name, of) for name in own] for of in ("layers", "heads"))
    layers, heads = (
        _span([geometric_mean(each) for each in null if each is not None]) for null in nulls
    )
    lost = int(dataset.lost.sum())
    return (
        f"The first layer has {layers} times the effective heads that exchanged layers have, and "
        f"{heads} times those of heads exchanged. Without retraining the top head of each later "
        f"layer alone has at least {min(pruned.values()):.2g} times the full model's risk, the "
        f"best mixture of its heads {_span(mixed.values())} for sparse weights and {_span(dense)} "
        f"for dense. Models trained with one head there have {min(trained.values()):.2g} or more. "
        "Dotted lines: means over layers. "
        f"{lost} training{'s' * (lost != 1)} diverged."
    )


def _span(values) -> str:
    ends = dict.fromkeys(f"{each:.2g}" for each in (min(values), max(values))) if values else ["no"]
    return " to ".join(ends)
