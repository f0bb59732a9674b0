"""What mixing makes of N_l, and N_l of the models whose heads cannot be mixed."""

import numpy as np

from experiments.heads.head_importance.claims import (
    agreement,
    counts,
    matters,
    models,
    most_heads,
    over_mixings,
    shares_covered,
)
from experiments.heads.head_importance.config import ABLATIONS
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

BLUE, RED, *_ = style.COLOURS


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(10.0, 6.4, (2, 3))
    merged, own = [str(name) for name in dataset.merged.values], models(dataset)
    for ax, name in zip(axes[:2], merged, strict=False):
        mixed(ax, dataset, name)
    coverage(axes[2], dataset, merged, config)
    effective(axes[3], own, config)
    for ax, model in zip(axes[4:], own, strict=False):
        ablations(ax, model, config)
    for ax in (ax for ax in axes if not ax.has_data()):
        ax.set_axis_off()
    return figure


def mixed(ax, dataset, name: str):
    """A bar for each seed, from the least N_l to the largest, and N_l as trained."""
    for r, run in enumerate(over_mixings(dataset, name)):
        x = np.arange(1, len(run) + 1) + 0.14 * (r - 2)
        least, trained, largest = run.T
        ends = [trained - np.minimum(least, trained), np.maximum(largest, trained) - trained]
        label = "as trained, and over mixings" if r == 0 else None
        ax.errorbar(x, trained, ends, fmt="o", color=BLUE, capsize=2, elinewidth=1.2, label=label)
    h = most_heads(dataset, name)
    for level in (1, h):
        ax.axhline(level, color="grey", lw=0.8, ls=":")
    ax.set(xlabel="layer", ylabel="effective heads $N_l$", ylim=(0.8, h + 0.8))
    ax.set_xticks(np.arange(1, len(run) + 1))
    ax.set_title(f"{name}: a bar for each seed")
    ax.legend(loc="upper left")


def coverage(ax, dataset, merged: list[str], config):
    """The share of [1, h] that mixing covers, as it is judged."""
    for i, name in enumerate(merged):
        shares = shares_covered(dataset, name)
        x = np.arange(1, shares.shape[1] + 1) + 0.12 * (2 * i - len(merged) + 1)
        points(ax, x, shares, name, style.COLOURS[i], style.MARKERS[i])
    ax.axhspan(config.covered, 1.05, color="grey", alpha=0.2, lw=0)
    ax.set(xlabel="layer", ylabel="share of [1, h] that $N_l$ covers", ylim=(0, 1.3))
    ax.set_title("what mixing covers")
    ax.legend(loc="upper left", ncols=2)


def effective(ax, own, config):
    """N_l / h of layer 1 and N_l of the others, with what they are to keep."""
    places, names = 0.0, []
    for model, color in zip(own, (RED, BLUE), strict=False):
        count, typical = counts(model), counts(model, "effective_of_median")
        alive = matters(model, config)
        for layer in range(count.shape[1]):
            runs = count[:, layer : layer + 1]
            points(ax, [places], runs, None, color, "o", filled=alive[layer])
            ax.plot(places + 0.22, typical[:, layer].mean(), "x", color=color)
            h = float(model.heads.values[layer])
            low, high = (config.all_matter * h, h) if layer == 0 else (1.0, config.one_later)
            ax.fill_between(
                places + np.array([-0.4, 0.4]), low, high, color="grey", alpha=0.2, lw=0
            )
            names.append((places, f"{model.model.item()}\n{layer + 1}".replace(" ", "\n")))
            places += 1
        places += 0.5
    ax.set_xticks(*zip(*names, strict=True), fontsize=6)
    ax.set(xlabel="model, layer", ylabel="effective heads $N_l$", ylim=(0.8, None))
    ax.set_title("heads that cannot be mixed")


def ablations(ax, model, config):
    """N_l by every way to take a head away, and how alike they rank the heads."""
    count = model.effective_ablated.transpose("ablation", "run", "layer").values
    layers = np.flatnonzero(np.isfinite(count).any((0, 1)))
    agree = agreement(model)
    for i, name in enumerate(ABLATIONS):
        x, label = layers + 1 + 0.15 * (i - 1.5), name
        if i:
            low, high = mean_interval(agree[i])
            label = f"{name}: {agree[i].mean():.2f} [{low:.2f}, {high:.2f}]"
        points(ax, x, count[i][:, layers], label, style.COLOURS[i], style.MARKERS[i])
    h = float(model.heads.values[0])
    ax.set(xlabel="layer", ylabel="effective heads $N_l$", xticks=layers + 1, ylim=(0.8, 1.8 * h))
    ax.set_title(f"{model.model.item()}: ablations")
    title = f"rank correlation with zero (judged: >= {config.agree:g})"
    ax.legend(loc="upper left", title=title, title_fontsize=7)


def points(ax, x, samples, label=None, color=style.BLACK, marker="o", filled=True):
    """Means of those runs [R, len(x)] that are finite, with their 95 % intervals."""
    columns = [column[np.isfinite(column)] for column in np.asarray(samples, float).T]
    middle = np.array([column.mean() for column in columns])
    ends = np.array([mean_interval(column) for column in columns]).T
    bars = np.abs(np.where(np.isfinite(ends), ends, middle) - middle)
    look = dict(color=color, mfc=color if filled else "white", capsize=2, elinewidth=0.8)
    ax.errorbar(np.asarray(x, float), middle, bars, fmt=marker, label=label, **look)


def caption(dataset) -> str:
    config, own = results.config_of(dataset), models(dataset)
    lost = sum(int(np.isnan(model.risk.values).sum()) for model in own)
    return (
        f"{answer(dataset, own)} a, b: N_l = exp(entropy of the rises of the risk without a "
        "head), as trained, and the least and largest that mixing the heads of the layer reaches "
        f"(condition {config.condition:g} at most, chosen on {config.searched_prompts} other "
        "prompts), which leaves every prediction as it is (a theorem). c: the share of [1, h] that "
        "this is, judged for layer 1 and for the later "
        "layer where it is least (grey: where a row would hold). d: heads of narrow keys and of "
        "softmax attention, which no mixing changes, with what A4 says of them in grey; crosses: "
        "rises of the median prompt's error, which does not see prompts that explode; hollow: "
        f"layers whose rises sum to less than {config.dead:g} of the first one's. What a layer "
        "computes determines narrow heads with a condition number of at most "
        f"{np.nanmax(dataset.condition):.3g}, merged ones not at all. e, f: mean "
        "ablation is zero ablation, for x and -x are as likely. Points: mean and 95 % interval "
        f"over seeds; {lost} diverged runs left out. n = {config.n}, {config.prompts} prompts. Our "
        "setting, modelled on A4 (2408.04532)."
    )


def answer(dataset, own) -> str:
    """The range of N_1 over mixings, and N of the heads that are their layers' own."""
    first = [count[:, 0].mean() / count_of_heads(m) for m in own if len(count := counts(m))]
    later = [count[:, 1:].mean(0).max() for m in own if len(count := counts(m))]
    ends = [over_mixings(dataset, name)[:, 0] for name in dataset.merged.values]
    config, wide = results.config_of(dataset), ""
    if ends:
        least, _, largest = np.mean(np.concatenate(ends), axis=0)
        h = most_heads(dataset, str(dataset.merged.values[0]))
        wide = f"of heads that can be mixed {least:.1f} to {largest:.1f} of {h} matter at will; "
    both = min(first) >= config.all_matter and max(later) <= config.one_later
    return (
        f"{'Yes' if both else 'No'}: {wide}of others {min(first):.0%} to {max(first):.0%} matter "
        f"in layer 1, and {min(later):.1f} to {max(later):.1f} heads in a later one."
    )


def count_of_heads(model) -> float:
    return float(model.heads.values[0])
