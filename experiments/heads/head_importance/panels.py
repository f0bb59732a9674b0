"""The panels of `head_importance`, and the numbers that they and its claims are about."""

import numpy as np

from experiments.heads.head_importance.appendix import everyone
from experiments.heads.head_importance.numbers import (
    agreement,
    counts,
    depth_of,
    matters,
    one_model,
)
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

MAPS = (
    ("depth 3", "full"),
    ("depth 5", "full"),
    ("depth 5", "first"),
    ("long training", "full"),
    ("dense", "full"),
    ("two of four", "full"),
    ("polynomial", "full"),
    ("softmax", "full"),
)
_LAYOUT = ("abcdmn", "efghmn", "ijklmn")


def draw(dataset):
    """Heat maps (a to h), what the count depends on (i to l), and all models (m, n)."""
    from matplotlib.figure import Figure

    settings = results.config_of(dataset)
    with style.context():
        drawn = Figure(figsize=(14.0, 7.8), layout="constrained")
        ratios = (1, 1, 1, 1, 1.05, 1.05)
        axes = drawn.subplot_mosaic([list(row) for row in _LAYOUT], width_ratios=ratios)
        for letter, ax in axes.items():
            ax.set_title(letter, loc="left", fontweight="bold")
    for letter, subject in zip("abcdefgh", MAPS, strict=True):
        heat_map(axes[letter], dataset, subject, settings)
    training(axes["i"], dataset, settings)
    ablations(axes["j"], dataset)
    representatives(axes["k"], dataset, settings)
    likeness(axes["l"], dataset)
    everyone(axes["m"], axes["n"], dataset, settings)
    return drawn


def points(ax, x, samples, label=None, color=style.BLACK, marker="o", filled=True):
    """Means of runs [R, len(x)] with their 95 % intervals."""
    samples = np.asarray(samples, float)
    kept = [column[np.isfinite(column)] for column in samples.T]
    some = [i for i, column in enumerate(kept) if len(column)]
    middle = np.array([kept[i].mean() for i in some])
    ends = np.array([mean_interval(kept[i]) for i in some]).reshape(-1, 2).T
    ends = np.where(np.isfinite(ends), ends, middle)
    ax.errorbar(
        np.asarray(x, float)[some],
        middle,
        np.abs(ends - middle),
        fmt=marker,
        color=color,
        mfc=color if filled else "white",
        label=label,
        capsize=2,
        elinewidth=0.8,
    )


def heat_map(ax, dataset, subject, settings):
    """Shares of a layer, its heads sorted; at the right what a layer counts and sums to."""
    model = one_model(dataset, *subject)
    if model is None:
        ax.set_axis_off()
        return
    rise = np.maximum(model.rise.transpose("run", "layer", "head").values, 0)
    rise = rise[np.isfinite(rise[:, 0]).any(1)]
    widest = int(np.nanmax(model.heads.values))
    rise = np.nan_to_num(rise[:, : depth_of(model), :widest])
    total = rise.sum(-1, keepdims=True)
    shares = np.sort(rise / np.where(total > 0, total, 1), axis=-1)[..., ::-1].mean(0)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    present = model.heads.values
    for (layer, head), share in np.ndenumerate(shares):
        if head < present[layer]:
            color = "white" if share > 0.55 else "black"
            ax.text(head, layer, f"{share:.2f}", ha="center", va="center", fontsize=7, color=color)
    count, alive = counts(model).mean(0), matters(model, settings)
    for layer, (mean, sum_) in enumerate(zip(count, total.mean((0, 2)), strict=True)):
        text = f"{mean:.1f} ({sum_:.2g})"
        color = "black" if alive[layer] else "grey"
        ax.text(widest - 0.4, layer, text, va="center", fontsize=7, color=color, clip_on=False)
    ax.set_xlim(-0.5, widest + 0.75)
    names = [str(head + 1) for head in range(widest)]
    ax.set_xticks([*range(widest), widest + 0.1], [*names, "$N_l$ (sum)"])
    ax.set_yticks(range(len(shares)), [str(layer + 1) for layer in range(len(shares))])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set(ylabel="layer")
    ax.set_title(str(model.model.values), fontsize=8)


def training(ax, dataset, settings):
    """The first layer's count and the others' mean against training steps."""
    for name, color in zip(dataset.way.values, style.COLOURS, strict=False):
        way = dataset.sel(way=name)
        found = way.effective_on_the_way.transpose("run", "look", "layer").values
        h = float(one_model(dataset, name, "full").heads.values[0])
        later = found[..., 1:]
        deep = np.isfinite(later).any((0, 1))
        points(ax, way.steps.values, found[..., 0] / h, str(name), color)
        points(ax, way.steps.values * 1.06, later[..., deep].mean(-1) / h, None, color, "s", False)
    ax.axhline(settings.all_matter, color="grey", lw=0.8, ls="--")
    steps = dataset.steps.values
    style.log_axes(ax, x=True, ticks=sorted({np.nanmin(steps), *np.nanmax(steps, 1)}))
    ax.set(xlabel="training steps", ylabel="effective heads / h", ylim=(0, 1.05))
    ax.set_title("training length")
    ax.legend(loc="lower left")


def ablations(ax, dataset):
    count = dataset.effective_ablated.transpose("ablation", "run", "layer").values
    layers = np.flatnonzero(np.isfinite(count).any((0, 1)))
    agree = agreement(dataset).mean(1)
    for i, name in enumerate(dataset.ablation.values):
        label = f"{name} ({agree[i]:.2f})"
        x = layers + 1 + 0.15 * (i - 1.5)
        points(ax, x, count[i][:, layers], label, style.COLOURS[i], style.MARKERS[i])
    h = float(one_model(dataset, "depth 3", "full").heads.values[0])
    ax.set(xlabel="layer", ylabel="effective heads", xticks=layers + 1, ylim=(0, 1.85 * h))
    ax.set_title("ablation (depth 3)")
    ax.legend(loc="upper left", title="(rank correlation with zero)", title_fontsize=7)


def representatives(ax, dataset, settings):
    """The same functions, written with other heads."""
    for j, name in enumerate(dataset.again.values):
        found = dataset.effective_represented.sel(again=name).transpose(
            "representative", "run", "layer"
        )
        found = found.values[..., np.isfinite(found.values).any((0, 1))]
        h = float(one_model(dataset, str(name), "full").heads.values[0])
        for i, how in enumerate(dataset.representative.values):
            x = np.arange(found.shape[-1]) + 1 + 0.13 * (i - 1) + 0.06 * (2 * j - 1)
            label = f"{name}, {how}" if i == 0 else f"{how}" if j == 0 else None
            color = style.COLOURS[j]
            points(ax, x, found[i] / h, label, color, style.MARKERS[i], filled=i == 0)
    ax.axhline(settings.all_matter, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="layer", ylabel="effective heads / h", ylim=(0, 1.7))
    ax.set_xticks(np.arange(dataset.sizes["layer"]) + 1)
    ax.set_title("rewritten heads")
    ax.legend(loc="upper left")


def likeness(ax, dataset):
    """First-layer heads: across seeds, and against the construction's; hollow: random."""
    kinds = (
        ("across seeds", dataset.across.isel(layer=0), style.COLOURS[0], "o"),
        ("to the construction", dataset.built, style.COLOURS[1], "s"),
    )
    places = np.arange(dataset.sizes["pair"])
    for i, (label, values, color, marker) in enumerate(kinds):
        for state in dataset.state.values:
            runs = values.sel(state=state).transpose("run", "pair")
            trained = state == "trained"
            x = places + 0.2 * (i - 0.5) + 0.05 * (1 if trained else -1)
            points(ax, x, runs, label if trained else None, color, marker, trained)
    ax.set_xticks(places, [str(name).replace(" ", "\n") for name in dataset.pair.values])
    ax.set(ylabel="similarity of matched heads", ylim=(0, 1.45))
    ax.set_title("first-layer heads")
    ax.legend(loc="upper left")
