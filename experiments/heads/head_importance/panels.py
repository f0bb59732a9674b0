"""The panels of `head_importance`, each of what claims.py makes of its Dataset."""

import numpy as np

from experiments.heads.head_importance.claims import (
    agreement,
    counts,
    depth_of,
    full_heads,
    matters,
)
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

BLUE, RED, GREEN, *_ = style.COLOURS


def heat_map(ax, model, config):
    """Shares of a layer, its heads sorted; at the right what a layer counts and sums to."""
    rise = np.maximum(model.rise.transpose("run", "layer", "head").values, 0)
    rise = rise[np.isfinite(rise[:, 0]).any(1)]
    present, widest = model.heads.values, int(np.nanmax(model.heads.values))
    rise = np.nan_to_num(rise[:, : depth_of(model), :widest])
    total = rise.sum(-1, keepdims=True)
    shares = np.sort(rise / np.where(total > 0, total, 1), axis=-1)[..., ::-1].mean(0)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    words = dict(ha="center", va="center", fontsize=7)
    for (layer, head), share in np.ndenumerate(shares):
        if head < present[layer]:
            color = "white" if share > 0.55 else "black"
            ax.text(head, layer, f"{share:.2f}", color=color, **words)
    count, sums, alive = counts(model).mean(0), total.mean((0, 2)), matters(model, config)
    for layer, text in enumerate(f"{n:.1f} ({s:.2g})" for n, s in zip(count, sums, strict=True)):
        color = "black" if alive[layer] else "grey"
        ax.text(widest - 0.4, layer, text, color=color, clip_on=False, va="center", fontsize=7)
    ax.set_xlim(-0.5, widest + 0.75)
    names = [*(str(head + 1) for head in range(widest)), "$N_l$ (sum)"]
    ax.set_xticks([*range(widest), widest + 0.1], names)
    ax.set_yticks(range(len(shares)), [str(layer + 1) for layer in range(len(shares))])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(ylabel="layer")
    ax.set_title(str(model.model.values), fontsize=8)


def training(ax, dataset, config):
    """The first layer's count and the others' mean against training steps."""
    for name, color in zip(dataset.way.values, style.COLOURS, strict=False):
        way, heads = dataset.sel(way=name), full_heads(dataset, str(name))
        shares = way.effective_on_the_way.transpose("run", "look", "layer").values / heads
        later = shares[..., 1:]
        later = later[..., np.isfinite(later).any((0, 1))].mean(-1)
        points(ax, way.steps.values, shares[..., 0], str(name), color)
        points(ax, way.steps.values * 1.06, later, None, color, "s", filled=False)
    ax.axhline(config.all_matter, color="grey", lw=0.8, ls="--")
    steps = dataset.steps.values
    style.log_axes(ax, x=True, ticks=sorted({np.nanmin(steps), *np.nanmax(steps, 1)}))
    ax.set(xlabel="training steps", ylabel="effective heads / h", ylim=(0, 1.05))
    ax.set_title("training length")
    ax.legend(loc="lower left")


def ablations(ax, dataset):
    """Counts by every way to take a head away, and how alike they rank the heads."""
    count = dataset.effective_ablated.transpose("ablation", "run", "layer").values
    layers = np.flatnonzero(np.isfinite(count).any((0, 1)))
    agree = agreement(dataset).mean(1)
    for i, name in enumerate(dataset.ablation.values):
        x, label = layers + 1 + 0.15 * (i - 1.5), f"{name} ({agree[i]:.2f})"
        points(ax, x, count[i][:, layers], label, style.COLOURS[i], style.MARKERS[i])
    top = 1.85 * full_heads(dataset, "depth 3")
    ax.set(xlabel="layer", ylabel="effective heads", xticks=layers + 1, ylim=(0, top))
    ax.set_title("ablation (depth 3)")
    ax.legend(loc="upper left", title="(rank correlation with zero)", title_fontsize=7)


def representatives(ax, dataset, config):
    """The same functions, written with other heads."""
    axes = ("representative", "run", "layer")
    for j, name in enumerate(dataset.again.values):
        count = dataset.effective_represented.sel(again=name).transpose(*axes).values
        count = count[..., np.isfinite(count).any((0, 1))]
        for i, way in enumerate(dataset.representative.values):
            x = np.arange(count.shape[-1]) + 1 + 0.13 * (i - 1) + 0.06 * (2 * j - 1)
            label = f"{name}, {way}" if i == 0 else str(way) if j == 0 else None
            shares, marker = count[i] / full_heads(dataset, str(name)), style.MARKERS[i]
            points(ax, x, shares, label, style.COLOURS[j], marker, filled=i == 0)
    ax.axhline(config.all_matter, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="layer", ylabel="effective heads / h", ylim=(0, 1.7))
    ax.set_xticks(np.arange(dataset.sizes["layer"]) + 1)
    ax.set_title("rewritten heads")
    ax.legend(loc="upper left")


def likeness(ax, dataset):
    """First-layer heads: across seeds, and against the construction's; hollow: random."""
    kinds = (
        ("across seeds", dataset.across.isel(layer=0), BLUE, "o"),
        ("to the construction", dataset.built, RED, "s"),
    )
    places = np.arange(dataset.sizes["pair"])
    for i, (label, similarity, color, marker) in enumerate(kinds):
        for state, side in (("trained", 1), ("random", -1)):
            runs = similarity.sel(state=state).transpose("run", "pair")
            x, label = places + 0.2 * (i - 0.5) + 0.05 * side, label if side > 0 else None
            points(ax, x, runs, label, color, marker, filled=side > 0)
    ax.set_xticks(places, [str(name).replace(" ", "\n") for name in dataset.pair.values])
    ax.set(ylabel="similarity of matched heads", ylim=(0, 1.45))
    ax.set_title("first-layer heads")
    ax.legend(loc="upper left")


def first_layers(ax, dataset, config):
    """Every model: how many heads of its first layer matter, and its risk over ridge's."""
    models = in_rows(ax, dataset, config.all_matter)
    box = dict(facecolor="white", edgecolor="none", pad=1)
    for y, model in models:
        heads, ratio = float(model.heads.values[0]), float(model.risk.mean() / model.ridge)
        text = "" if np.isnan(ratio) else f"{ratio:.2f}"
        ax.text(0.02, y, text, va="center", fontsize=7, color="grey", bbox=box, zorder=5)
        bar(ax, y, counts(model)[:, 0] / heads, BLUE)
        ax.plot(counts(model, "effective_of_median")[:, 0].mean() / heads, y, "x", color=BLUE)
    ax.text(0.02, 0.75, "risk / ridge's", va="bottom", fontsize=7, color="grey")
    ax.set_yticks([y for y, _ in models], [str(model.model.values) for _, model in models])
    ax.axvspan(config.all_matter, 1.02, color=GREEN, alpha=0.12, lw=0)
    ax.set(xlim=(0, 1.02), xlabel="effective heads / h")
    ax.set_title("first layer")


def later_layers(ax, dataset, config):
    """Every model: how many heads of each later layer matter; hollow: of one that does not."""
    for y, model in in_rows(ax, dataset, config.one_later):
        count, typical = counts(model), counts(model, "effective_of_median").mean(0)
        alive = matters(model, config)
        for layer in (layer for layer in range(1, depth_of(model)) if model.heads[layer] > 1):
            height, color = y + 0.17 * (2.5 - layer), style.COLOURS[layer]
            bar(ax, height, count[:, layer], color, alive[layer])
            ax.plot(typical[layer], height, "x", color=color)
    for layer in range(1, dataset.sizes["layer"]):
        label = "layer 2" if layer == 1 else str(layer + 1)
        ax.plot([], [], "o", color=style.COLOURS[layer], label=label)
    ax.axvspan(0.8, config.one_later, color=GREEN, alpha=0.12, lw=0)
    ax.set(xlim=(0.8, float(dataset.heads.max()) + 0.3), xlabel="effective heads", yticks=[])
    ax.set_title("later layers")
    columns = dict(ncols=dataset.sizes["layer"], columnspacing=0.8, handletextpad=0)
    ax.legend(loc="upper right", **columns)


def in_rows(ax, dataset, bound: float) -> list:  # of (y, model)
    """A row for every model of which a run finished, those of a name together."""
    names = list(dict.fromkeys(dataset.family.values))
    order = np.argsort([names.index(name) for name in dataset.family.values], kind="stable")
    models = [dataset.isel(model=int(i)) for i in order]
    ax.axvline(bound, color="grey", lw=0.8, ls="--")
    ax.set_ylim(-len(models) + 0.4, 1.5)
    for place in range(1, len(models)):
        ax.axhline(0.5 - place, color="0.9", lw=0.5, zorder=0)
    return [(-place, model) for place, model in enumerate(models) if len(counts(model))]


def bar(ax, y, samples, color, filled=True):  # [R]
    """The mean of runs with its 95 % interval, as a row."""
    middle, (low, high) = samples.mean(), mean_interval(samples)
    ends = [[middle - low], [high - middle]] if np.isfinite(low) else None
    look = dict(color=color, mfc=color if filled else "white", capsize=2, elinewidth=0.8)
    ax.errorbar(middle, y, xerr=ends, fmt="o", **look)


def points(ax, x, samples, label=None, color=style.BLACK, marker="o", filled=True):
    """Means of those runs [R, len(x)] that are finite, with their 95 % intervals."""
    columns = [column[np.isfinite(column)] for column in np.asarray(samples, float).T]
    kept = [i for i, column in enumerate(columns) if len(column)]
    middle = np.array([columns[i].mean() for i in kept])
    ends = np.array([mean_interval(columns[i]) for i in kept]).reshape(-1, 2).T
    bars = np.abs(np.where(np.isfinite(ends), ends, middle) - middle)
    look = dict(color=color, mfc=color if filled else "white", capsize=2, elinewidth=0.8)
    ax.errorbar(np.asarray(x, float)[kept], middle, bars, fmt=marker, label=label, **look)
