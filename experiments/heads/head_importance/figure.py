"""N_l of the models whose heads cannot be mixed, and what mixing makes of it elsewhere."""

import numpy as np

from experiments.heads.head_importance import claims
from experiments.heads.head_importance.claims import ALL_MATTER, ONE_LATER
from experiments.heads.head_importance.config import ABLATIONS
from experiments.heads.head_importance.head_counts import (
    DEAD,
    agreement,
    counts,
    heads_of,
    matters,
    most_heads,
    over_mixings,
    own_models,
)
from experiments.heads.looks import look_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import mean_interval
from lsa_lab.store import results

EFFECTIVE = "effective heads $N_l$"


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((4, 3, 4), (1,)))
    own_heads(axes[0], own_models(dataset))
    merged = [str(name) for name in dataset.merged.values]
    for ax, name in zip(axes[1:3], merged, strict=False):
        mixed(ax, dataset, name)
    for ax in axes[1 + len(merged) : 3]:
        ax.set_visible(False)
    judged(axes[3], dataset)
    return figure


def appendix(dataset):
    """N_l by every way to take a head away."""
    own = own_models(dataset)
    figure, axes = style.figure(6.75, 2.8, (1, len(own)), first="e")
    for ax, model in zip(axes, own, strict=True):
        ablations(ax, model)
    return figure


def own_heads(ax, own):
    """N_l of each layer of the models, and the heads that A4 says matter there."""
    depth, h = max(counts(model).shape[1] for model in own), heads_of(own[0])
    for layer in range(1, depth + 1):
        low, high = (ALL_MATTER * h, h) if layer == 1 else (1.0, ONE_LATER)
        ax.bar(layer, high - low, 0.7, low, color="grey", alpha=0.2, lw=0)
    for i, model in enumerate(own):
        name, count = str(model.model.item()), counts(model)
        alive, look = matters(model), look_of(name)
        x = np.arange(1, count.shape[1] + 1) + 0.24 * (i - (len(own) - 1) / 2)
        for kept, face in ((alive, look["color"]), (~alive, "white")):
            points(ax, x[kept], count[:, kept], mfc=face, ms=5, **look)
        if len(count):
            low = mean_interval(count[:, -1])[0] if i == 0 else count[:, -1].mean()
            direct_label(ax, x[-1], max(low, 0.9), name, look["color"], (6, 0) if i else (-2, -2))
    direct_label(ax, 1.35, h, "A4: all heads", "dimgrey", (2, 2))
    if depth > 1:
        direct_label(ax, 2, ONE_LATER, "A4: one head", "dimgrey", (0, 2))
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


def judged(ax, dataset):
    """Shares of heads and of the range of N_l, and what else is judged but later layers (a)."""
    judged_panel.rows(ax, *evidence(claims, dataset), (0.0, 1.2))
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
    h = heads_of(model)
    ax.set(xlabel="layer", ylabel=EFFECTIVE, xticks=layers + 1, ylim=(0.8, 1.9 * h))
    ax.set_title(str(model.model.item()))
    ax.legend(loc="upper left", title="rank correlation with zero ablation", title_fontsize=7)


def points(ax, x, samples, **look):
    """Means of those runs [R, len(x)] that are finite, with their intervals."""
    columns = [column[np.isfinite(column)] for column in np.asarray(samples, float).T]
    middle = np.array([column.mean() for column in columns])
    ends = np.array([mean_interval(column) for column in columns]).T.reshape(2, -1)
    bars = np.abs(np.where(np.isfinite(ends), ends, middle) - middle)
    ax.errorbar(np.asarray(x, float), middle, bars, ls="none", capsize=2, elinewidth=0.8, **look)


def caption(dataset) -> str:
    config, own = results.config_of(dataset), own_models(dataset)
    lost = sum(int(np.isnan(model.risk.values).sum()) for model in own)
    condition = dataset.condition.values[np.isfinite(dataset.condition)]
    exact = f" (condition number {condition.max():.3g} at most)" if condition.size else ""
    return (
        f"{answer(dataset, own)} N_l = exp(entropy of the rises of the risk without a head of "
        f"layer l). a: heads that no mixing changes{exact}; grey: as A4 says; hollow: layers whose "
        f"rises sum to less than {DEAD:g} of the first one's. b, c: mixing wide heads "
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
    first = [count[:, 0].mean() / heads_of(m) for m in own if len(count := counts(m))]
    later = [count[:, 1:].mean(0).max() for m in own if len(count := counts(m))]
    ends = [over_mixings(dataset, name)[:, 0] for name in dataset.merged.values]
    wide = ""
    if ends:
        least, _, largest = np.mean(np.concatenate(ends), axis=0)
        h = most_heads(dataset, str(dataset.merged.values[0]))
        wide = f". Of heads that can be mixed {least:.1f} to {largest:.1f} of {h} matter, at will"
    both = min(first) >= ALL_MATTER and max(later) <= ONE_LATER
    return (
        f"{'Yes' if both else 'No'}: {min(first):.0%} to {max(first):.0%} of the heads matter in "
        f"layer 1, and {min(later):.1f} to {max(later):.1f} heads in a later one{wide}."
    )
