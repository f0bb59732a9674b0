"""What a new order changes, what rules change, and the worth of every place."""

import numpy as np

from experiments.descent.order import claims
from experiments.descent.order.claims import shares
from experiments.descent.order.config import ASKED, KINDS, RULES, TRAINED
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label

NOISY, (_, CONTROL, RANDOM, DESCENT) = "trained, noisy label", ASKED
CAUSAL = style.METHOD["softmax, causal"]
LOOKS = {TRAINED: CAUSAL, CONTROL: style.METHOD["softmax"], DESCENT: style.METHOD[DESCENT]}
LOOKS |= {
    RANDOM: CAUSAL | {"mfc": "white", "ls": ":"},
    NOISY: CAUSAL | {"marker": None, "ls": "--"},
}


def plot(dataset):
    return style.panels(dataset, 2.6, plot_shares, plot_rules)


def appendix(dataset):
    """What a demonstration is worth in every place."""
    figure, axes = style.figure(6.75, 2.4, (1, 2), "c")
    place = claims.numbers(dataset).place
    place_curves(axes[0], shares(place.noisy.sel(kind=[TRAINED]).assign_coords(kind=[NOISY])), -1)
    place_curves(axes[0], shares(place.error).drop_sel(kind=RANDOM))
    axes[0].set(ylabel="error / its mean", title="Causal stacks use late relevance better")
    axes[0].set_xlabel("place of the relevant demonstration")
    place_curves(axes[1], shares(place.influence).drop_sel(kind=CONTROL))
    axes[1].set(ylabel="influence / its mean", title="Training shifts influence to the end")
    return figure


def plot_shares(ax, dataset):
    """The spread of predictions over orders beside that over other demonstrations."""
    depth = dataset.depth.values
    for i, kind in enumerate(KINDS):
        runs, look = dataset.share.sel(kind=kind), style.METHOD[f"{kind}, causal"]
        x = depth + 0.08 * (i - 1)
        style.mean_points(ax, x, runs.transpose("run", "depth"), ls="-", lw=0.6, capsize=2, **look)
        direct_label(ax, x[-1], runs.isel(depth=-1).mean().item(), kind, look["color"], (7, 0))
    ax.set(title="Causal stacks mind the order", ylabel="spread by order / by prompt")
    ax.set(xlabel="causal layers", xticks=depth, xlim=(0.7, depth[-1] + 1), ylim=(-0.03, None))


def plot_rules(ax, dataset):
    """A row for each rule, in it the median of each model's runs and the middle 80 % of them."""
    rules = claims.numbers(dataset).rules
    for i, model in enumerate(rules.model.values):
        runs = 100 * rules.change.sel(model=model).transpose("run", "rule").values
        (low, high), middle = np.quantile(runs, style.QUANTILES, axis=0), np.median(runs, axis=0)
        bars = {"xerr": [middle - low, high - middle], "elinewidth": 0.8, "ls": "none"}
        look = style.METHOD[f"{model.split()[-1]}, causal"]
        ax.errorbar(middle, np.arange(len(RULES)) + 0.25 * (i - 1), label=model, **bars, **look)
    ax.axvspan(ax.get_xlim()[0], -100 * claims.HELPS, color="grey", alpha=0.15, lw=0)
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(range(len(RULES)), RULES)
    ax.set(ylim=(len(RULES) - 0.5, -0.5), title="Large steps first help descent")
    ax.set(xlabel="change against random orders, %")
    ax.legend(fontsize=7, loc="upper right")


def place_curves(ax, values, raised=1):
    """A curve for each kind of model, with the intervals of its runs and its name above or below
    the end."""
    place = values.place.values
    for kind in values.kind.values:
        runs = values.sel(kind=kind).transpose("run", "place").astype(float)
        look = {"ls": "-"} | LOOKS[kind]
        style.mean_points(ax, place, runs, lw=0.8, capsize=0, **look)
        direct_label(ax, place[-1], float(runs.mean("run")[-1]), kind, look["color"], (6, raised))
    ax.set(xlabel="place of a demonstration", xlim=(0.5, 1.6 * place[-1]))
    ax.set_xticks(np.unique([1, *place[len(place) // 4 - 1 :: max(1, len(place) // 4)]]))


def caption(dataset) -> str:
    share, ordered = dataset.share.mean("run"), claims.numbers(dataset)
    depths = [depth for depth in share.depth.values if depth > 1]  # one layer knows no order
    moved = (share.sel(depth=x).values for x in (min(depths), max(depths)))
    few, many = (f"{values.min():.2g} to {values.max():.2g}" for values in moved)
    start, middle, end = claims.ends_and_middle(ordered.place, "error")
    rises = [float((middle - each).mean()) for each in (start[:, 0], end[:, -1])]
    rules = ordered.rules
    steps = rules.change.sel(rule="large to small step").median("run")
    by_rule = ", ".join(f"{float(steps.sel(model=m)):+.0%} ({m})" for m in rules.model.values)
    far = [f"{r:.2g}" for r in (rules.level / rules.bayes).median("run").values]
    return (
        f"With {min(depths)} causal layers a new order moves the answer by {few} of what new "
        f"demonstrations would, with {max(depths)} by {many}. Against the middle, the relevant "
        f"demonstration changes the error by {rises[0]:+.0%} if first, "
        f"{rises[1]:+.0%} if last. Large steps first change it by {by_rule}. Random orders have "
        f"{', '.join(far)} times the Bayes rule's error. Bars of b: middle 80 %."
    )
