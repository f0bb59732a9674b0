"""How many heads matter in a layer, what mixing makes of it, and what it costs to remove heads."""

from collections import defaultdict

import numpy as np

from experiments.heads.head_pruning import claims
from experiments.heads.head_pruning.claims import (
    ALL_MATTER,
    ONE_LATER,
    effective_heads,
    geometric_mean,
    most_heads,
    over_mixings,
    own_names,
    ratios,
)
from experiments.heads.head_pruning.config import ANY, FIRST, OTHERS, PRUNED, TRAINED
from experiments.heads.looks import look_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import mean_interval
from lsa_lab.store import results

EFFECTIVE, OVER_FULL = "effective heads $N_l$", "risk / full model's"
# Of the families that the caption speaks of.
MIDDLES = dict.fromkeys(("pruned", "best_mixed", "trained"), geometric_mean)
MIDDLES |= dict.fromkeys(("first", "later"), np.mean)
ROWS = (PRUNED, OTHERS, ANY, FIRST, TRAINED)  # rows of models whose heads cannot be mixed


def plot(dataset):
    config, own = results.config_of(dataset), own_names(dataset)
    figure, axes = style.stacked(6.75, (2.6, 2.6), ((4, 3, 4), (1, 1)))
    own_heads(axes[0], dataset, own)
    merged = [str(name) for name in dataset["importance.merged"].values]
    for ax, name in zip(axes[1:3], merged, strict=False):
        mixed(ax, dataset, name)
    for ax in axes[1 + len(merged) : 3]:
        ax.set_visible(False)
    style.log_axes(axes[3], x=True, ticks=(1, 3, 10, 30))
    judged(axes[3], dataset, ["pruned", "best_mixed", "trained"], (0.8, 40))
    axes[3].set(xlabel=f"{OVER_FULL}, n = {config.n}", title="one head a later layer")
    all_treatments(axes[4], dataset, own)
    return figure


def appendix(dataset):
    """What is judged of importances, and of other choices of heads."""
    figure, (share, others) = style.stacked(6.75, (2.2,), ((1, 1),), first="f")
    judged(share, dataset, ["first", "mixing"], (0, 1.2))
    share.set(xlabel="share of $h$ or of [1, $h$]", title="judged: importance")
    style.log_axes(others, x=True, ticks=(0.1, 1, 10, 100))
    judged(others, dataset, ["other_heads"], (0.05, 100))
    others.set(xlabel="risk / with the top heads", title="judged: other heads")
    return figure


def judged(ax, dataset, names: list[str], span):
    """The rows of these statements, families cell by cell."""
    statements, samples = evidence(claims, dataset)
    kept = [statement for statement in statements if statement.id in names]
    judged_panel.rows(ax, kept, samples, span)


def own_heads(ax, dataset, own: list[str]):
    """N_l of each layer of the models, and the heads that A4 says matter there."""
    counts, h = [effective_heads(dataset, name) for name in own], most_heads(dataset, own[0])
    depth = max(count.shape[1] for count in counts)
    for layer in range(1, depth + 1):
        low, high = (ALL_MATTER * h, h) if layer == 1 else (1.0, ONE_LATER)
        ax.bar(layer, high - low, 0.7, low, color="grey", alpha=0.2, lw=0)
    for i, (name, count) in enumerate(zip(own, counts, strict=True)):
        x = np.arange(1, count.shape[1] + 1) + 0.24 * (i - (len(own) - 1) / 2)
        style.mean_points(ax, x, count, **look_of(name), ls="none", capsize=2, ms=5)
        low = mean_interval(count[:, -1])[0] if i == 0 else count[:, -1].mean()
        place = max(low, 0.9), name, look_of(name)["color"]
        direct_label(ax, x[-1], *place, (6, 0) if i else (-2, -2))
    direct_label(ax, 1.35, h, "A4: all heads", "dimgrey", (2, 2))
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


def all_treatments(ax, dataset, own: list[str]):
    """Geometric means over seeds, with their intervals, a row for each way to choose heads."""
    for i, case in enumerate(own):
        look = look_of(case)
        for row, treatment in enumerate(ROWS):
            logs, y = np.log(ratios(dataset, case, treatment)), row + 0.24 * (i - 0.5)
            if len(logs):
                ends = np.exp(np.concatenate(style.mean_ends(logs[:, None])))
                ax.plot(ends, [y, y], "-", color=look["color"])
                ax.plot(np.exp(logs.mean()), y, **look, ls="none", ms=5)
        top = geometric_mean(ratios(dataset, case, PRUNED))
        direct_label(ax, top, 0.24 * (i - 0.5), case, look["color"], (0, -7 if i else 5))
    ax.set_yticks(range(len(ROWS)), ROWS, fontsize=7)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel=OVER_FULL, ylim=(len(ROWS) - 0.5, -0.9), title="cannot be mixed")


def caption(dataset) -> str:
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    means = {}
    for cell in cells_of(statements):
        middle = MIDDLES.get(cell.family)
        if middle and cell.case["model"] != "dense" and samples[cell.id] is not None:
            means.setdefault(cell.family, []).append(middle(samples[cell.id]))
    least = defaultdict(lambda: np.nan, {family: min(each) for family, each in means.items()})
    later = max(means.get("later", [np.nan]))
    ends = [over_mixings(dataset, name)[:, 0] for name in dataset["importance.merged"].values]
    low, _, high = np.mean(np.concatenate(ends), axis=0) if ends else [np.nan] * 3
    both = least["first"] >= ALL_MATTER and later <= ONE_LATER
    return (
        f"{'Yes' if both else 'No'}: at least {least['first']:.0%} of the first layer's heads "
        f"matter, but up to {later:.1f} in a later one. Mixing, which changes no "
        f"prediction, moves the number in layer 1 from {low:.1f} to {high:.1f}. With the top head "
        f"of each later layer the risk is {least['pruned']:.2g} times the full model's or more, "
        f"with the best mixture {least['best_mixed']:.2g} times, in models trained so "
        f"{least['trained']:.2g} times. Bars in b, c are ranges over mixings of condition "
        f"{config.importance.condition:g}. {int(dataset.lost.sum())} trainings diverged."
    )
