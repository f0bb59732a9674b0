"""A panel for each layer: the closed curve of its rule, the rule simulated, and what is trained."""

import numpy as np

from experiments.recurrent.learning_curves import claims
from experiments.recurrent.learning_curves.claims import NAMES
from experiments.recurrent.learning_curves.config import DEPTHS, LAYERS, RULE, TIMES
from lsa_lab.harness.draw import style
from lsa_lab.store import results

COLOURS = style.COLOURS[3:]  # of one layer and of two


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1, 1), (1, 1, 1)))
    low = 0.7 * float(dataset.closed[:, -1].min())
    for ax, layer in zip(axes, LAYERS, strict=True):
        plot_layer(ax, dataset, layer)
        ax.set(title=NAMES[layer], ylim=(low, 1.5))
    for ax in axes[::3]:
        ax.set_ylabel("excess risk")
    for ax in axes[3:]:
        ax.set_xlabel("demonstrations")
    axes[0].legend(loc="lower left")
    return figure


def plot_layer(ax, dataset, layer):
    config, prefix = results.config_of(dataset), dataset.prefix.values[1:]
    later = dataset.sel(prefix=prefix)
    style.log_axes(ax, x=True, y=True, ticks=[config.n * k for k in (1, *TIMES)])
    style.line(ax, prefix, later.closed.sel(rule="ridge"), "ridge, the Bayes rule", "0.6", ":")
    if layer in RULE:
        places = np.unique(np.geomspace(1, len(prefix), 12).round().astype(int)) - 1
        rule = later.sel(rule=RULE[layer])
        style.line(ax, prefix, rule.closed, "closed curve", style.BLACK)
        dots = dict(ls="", marker="o", ms=2.5, color=style.BLACK, mfc="white")
        ax.plot(prefix[places], rule.simulated[places], label="the rule, simulated", **dots)
    for depth, color in zip(DEPTHS, COLOURS, strict=False):
        runs = later.risk.sel(layer=layer, depth=depth).transpose("run", "prefix")
        name = f"trained, {depth} layer{'s' * (depth > 1)}"
        style.band(ax, prefix, runs, name, color, marker=None)
    ax.axvline(config.n, color="grey", lw=0.8, ls="--")


def caption(dataset) -> str:
    config, curves = results.config_of(dataset), claims.numbers(dataset)
    first, last = DEPTHS[0], DEPTHS[-1]

    def median(values):
        return float(np.median(values))

    longest = TIMES[-1]
    fewest = min(median(curves.growth(layer, first, longest)) for layer in RULE)
    most = max(median(curves.growth(layer, last, longest)) for layer in RULE)
    null = max(median(curves.nearness(layer, depth)) for layer in RULE for depth in DEPTHS)
    return (
        f"On prompts {longest} times longer than in training, the risk of one recurrent layer "
        f"changes by a factor of {fewest:.2g} at best. Two layers of the worst kind change theirs "
        f"by a factor of {most:.2g}. Bands are the middle 80 % of {config.runs} runs; the dashed "
        f"line marks the training length. A trained layer differs from its nearest rule by at most "
        f"{null:.2g} of what it differs from ridge regression on another task's labels."
    )
