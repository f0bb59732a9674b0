"""N_l of the models whose heads cannot be mixed, and what mixing makes of it elsewhere."""

import numpy as np

from experiments.heads.head_importance.claims import (
    agreement,
    counts,
    matters,
    models,
    most_heads,
    over_mixings,
    samples,
)
from experiments.heads.head_importance.config import ABLATIONS, statements
from experiments.heads.head_importance.statements import id_of
from experiments.heads.kinds import by_kind
from experiments.heads.looks import look_of
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label
from lsa_lab.statistics import mean_interval

EFFECTIVE = "effective heads $N_l$"


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((4, 3, 4), (1,)))
    heads_of_their_own(axes[0], models(dataset), config)
    merged = [str(name) for name in dataset.merged.values]
    for ax, name in zip(axes[1:3], merged, strict=False):
        mixed(ax, dataset, name)
    for ax in axes[1 + len(merged) : 3]:
        ax.set_visible(False)
    judged(axes[3], dataset, config)
    return figure


def appendix(dataset):
    """N_l by every way to take a head away."""
    own = models(dataset)
    figure, axes = style.figure(6.75, 2.8, (1, len(own)), first="e")
    for ax, model in zip(axes, own, strict=True):
        ablations(ax, model)
    return figure


def heads_of_their_own(ax, own, config):
    """N_l of each layer of the models, and the heads that A4 says matter there."""
    depth, h = max(counts(model).shape[1] for model in own), float(own[0].heads.values[0])
    for layer in range(1, depth + 1):
        low, high = (config.all_matter * h, h) if layer == 1 else (1.0, config.one_later)
        ax.bar(layer, high - low, 0.7, low, color="grey", alpha=0.2, lw=0)
    for i, model in enumerate(own):
        name, count = str(model.model.item()), counts(model)
        alive, look = matters(model, config), look_of(name)
        x = np.arange(1, count.shape[1] + 1) + 0.24 * (i - (len(own) - 1) / 2)
        for kept, face in ((alive, look["color"]), (~alive, "white")):
            points(ax, x[kept], count[:, kept], mfc=face, ms=5, **look)
        if len(count):
            low = mean_interval(count[:, -1])[0] if i == 0 else count[:, -1].mean()
            direct_label(ax, x[-1], max(low, 0.9), name, look["color"], (6, 0) if i else (-2, -2))
    direct_label(ax, 1.35, h, "A4: all heads", "dimgrey", (2, 2))
    if depth > 1:
        direct_label(ax, 2, config.one_later, "A4: one head", "dimgrey", (0, 2))
    ax.set(xlabel="layer", ylabel=EFFECTIVE, xticks=range(1, depth + 1), ylim=(0.8, h + 0.6))
    ax.set(xlim=(0.5, depth + 0.7), title="cannot be mixed")


def mixed(ax, dataset, name: str):
    """A bar for each seed, from the least N_l to the largest, and N_l as trained."""
    runs, h, look = over_mixings(dataset, name), most_heads(dataset, name), style.METHOD["linear"]
    layers, few = np.arange(1, runs.shape[1] + 1), len(runs) <= 6
    step, thin = (0.14, {}) if few else (0.84 / len(runs), {"elinewidth": 0.6, "ms": 1.5})
    for r, run in enumerate(runs):
        least, trained, largest = run.T
        ends = [trained - np.minimum(least, trained), np.maximum(largest, trained) - trained]
        x = layers + step * (r - (2 if few else (len(runs) - 1) / 2))
        ax.errorbar(x, trained, ends, **look, ls="none", **{"elinewidth": 1.2} | thin)
    for level in (1, h):
        ax.axhline(level, color="grey", lw=0.8, ls=":")
    ax.set(xlabel="layer", ylabel=EFFECTIVE, xticks=layers, ylim=(0.8, h + 0.6))
    ax.set_title(f"mixable, {name}")


def judged(ax, dataset, config):
    """Shares of heads and of the range of N_l, and what else is judged but later layers (a)."""
    merged, own = by_kind(config.models)
    words = {"first": "$N_1/h$", "first_of_median": "$N_1/h$ for the median prompt"}
    labels = {id_of(id, name): f"{text}, {name}" for id, text in words.items() for name, _ in own}
    words = {
        "mixing_first": "range of $N_1$ over mixings",
        "mixing_later": "range of a later $N_l$",
    }
    labels |= {
        id_of(id, name): f"{text}, {name}" for id, text in words.items() for name, _ in merged
    }
    labels |= {"found": "risk / ridge's, worst model", "ablations": "rank correlation of ablations"}
    judged_panel.rows(ax, statements(config), samples(dataset), labels, (0.0, 1.2))
    ax.set(xlabel="share of $h$ or of [1, $h$]; ratio; correlation", title="what is judged")


def ablations(ax, model):
    """N_l by every way to take a head away, and how alike they rank the heads."""
    count = model.effective_ablated.transpose("ablation", "run", "layer").values
    layers = np.flatnonzero(np.isfinite(count).any((0, 1)))
    agree = agreement(model)
    for i, name in enumerate(ABLATIONS):
        x, label = layers + 1 + 0.15 * (i - 1.5), name
        if i:
            low, high = mean_interval(agree[i])
            label = f"{name}: {agree[i].mean():.2f} [{low:.2f}, {high:.2f}]"
        look = dict(color=style.COLOURS[i], marker=style.MARKERS[i], label=label)
        points(ax, x, count[i][:, layers], **look)
    h = float(model.heads.values[0])
    ax.set(xlabel="layer", ylabel=EFFECTIVE, xticks=layers + 1, ylim=(0.8, 1.9 * h))
    ax.set_title(str(model.model.item()))
    ax.legend(loc="upper left", title="rank correlation with zero ablation", title_fontsize=7)


def points(ax, x, samples, **look):
    """Means of those runs [R, len(x)] that are finite, with their 95 % intervals."""
    columns = [column[np.isfinite(column)] for column in np.asarray(samples, float).T]
    middle = np.array([column.mean() for column in columns])
    ends = np.array([mean_interval(column) for column in columns]).T.reshape(2, -1)
    bars = np.abs(np.where(np.isfinite(ends), ends, middle) - middle)
    ax.errorbar(np.asarray(x, float), middle, bars, ls="none", capsize=2, elinewidth=0.8, **look)


def caption(dataset) -> str:
    config, own = results.config_of(dataset), models(dataset)
    lost = sum(int(np.isnan(model.risk.values).sum()) for model in own)
    condition = dataset.condition.values[np.isfinite(dataset.condition)]
    exact = f" (condition number {condition.max():.3g} at most)" if condition.size else ""
    return (
        f"{answer(dataset, own)} N_l = exp(entropy of the rises of the risk without a head of "
        f"layer l). a: heads that no mixing changes{exact}; grey: as A4 says; hollow: layers whose "
        f"rises sum to less than {config.dead:g} of the first one's. b, c: mixing wide heads "
        "leaves every prediction as it is (a theorem); bars: for each seed, the least and largest "
        f"N_l found by mixings of condition {config.condition:g} at most, chosen on "
        f"{config.searched_prompts} other prompts; dots: as trained. d: {judged_panel.KEY}; later: "
        f"where the range is least. Means over seeds, {lost} diverged runs left out; "
        f"n = {config.n}, {config.prompts} prompts (softmax: {config.softmax_prompts}). "
        f"Appendix (e, f): other ways to take a head away, {config.ablation_prompts} prompts. "
        "Our setting, modelled on A4 (2408.04532)."
    )


def answer(dataset, own) -> str:
    """N of the heads that are their layers' own, and the range of N_1 over mixings."""
    first = [count[:, 0].mean() / count_of_heads(m) for m in own if len(count := counts(m))]
    later = [count[:, 1:].mean(0).max() for m in own if len(count := counts(m))]
    ends = [over_mixings(dataset, name)[:, 0] for name in dataset.merged.values]
    config, wide = results.config_of(dataset), ""
    if ends:
        least, _, largest = np.mean(np.concatenate(ends), axis=0)
        h = most_heads(dataset, str(dataset.merged.values[0]))
        wide = f". Of heads that can be mixed {least:.1f} to {largest:.1f} of {h} matter, at will"
    both = min(first) >= config.all_matter and max(later) <= config.one_later
    return (
        f"{'Yes' if both else 'No'}: {min(first):.0%} to {max(first):.0%} of the heads matter in "
        f"layer 1, and {min(later):.1f} to {max(later):.1f} heads in a later one{wide}."
    )


def count_of_heads(model) -> float:
    return float(model.heads.values[0])
