"""A panel for each layer: the closed curve of its rule, the rule simulated, and what is trained."""

import numpy as np

from experiments.recurrent.learning_curves import claims
from experiments.recurrent.learning_curves.config import DEPTHS, RULE, TIMES
from lsa_lab.harness.draw import style
from lsa_lab.store import parts, results

COLOURS = style.COLOURS[3:]  # of one layer and of two
TITLES = {
    "additive": "Linear attention lags",
    "lms": "One LMS layer is better",
    "delta": "DeltaNet has a floor",
    "gated_delta": "Gating keeps the floor",
    "mesa": "Mesa keeps learning",
    "softmax": "Softmax gains by depth",
}
BOUND = {  # of stacks whose tokens bind x and y, or do not
    "additive": "Linear attention needs bound tokens",
    "delta": "DeltaNet is better when bound",
    "gated_delta": "Gated DeltaNet is better when bound",
    "mesa": "Mesa learned bound tokens alone",
}


def plot(dataset):
    """A layer that stops learning, and one that does not."""
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    kinds = [
        layer for layer in ("delta", "mesa") if layer in dataset.layer.values
    ]  # the smoke tier has one
    for ax, layer in zip(axes, kinds, strict=False):
        plot_layer(ax, dataset, layer)
        ax.set(title=TITLES[layer], xlabel="demonstrations")
        ax.set_ylim(0.4 * float(dataset.closed[:, -1].min()), 1.5)
    axes[0].set_ylabel("excess risk")
    axes[len(kinds) - 1].legend(loc="lower left")
    return figure


def appendix(dataset):
    return every_layer(dataset), longer(dataset)


def every_layer(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1, 1), (1, 1, 1)), "c")
    low = 0.4 * float(dataset.closed[:, -1].min())
    for ax, layer in zip(axes, dataset.layer.values, strict=False):
        plot_layer(ax, dataset, layer)
        ax.set(title=TITLES[layer], ylim=(low, 1.5))
    for ax in axes[::3]:
        ax.set_ylabel("excess risk")
    for ax in axes[3:]:
        ax.set_xlabel("demonstrations")
    handles, names = axes[0].get_legend_handles_labels()
    for ax, part in zip(axes[::5], (slice(0, 3), slice(3, None)), strict=True):
        ax.legend(handles[part], names[part], loc="lower left")
    return figure


def longer(dataset):
    """Two layers after a longer training, on bound and on interleaved tokens."""
    figure, axes = style.figure(6.75, 4.4, (2, 2), first="i")
    stacks = parts.part(dataset, "stacks")
    for ax, layer in zip(axes, stacks.layer.values, strict=False):
        plot_stacks(ax, dataset, stacks.sel(layer=layer), layer)
        ax.set(title=BOUND[layer], ylim=(0.0004, 1.6))
    for ax in axes[::2]:
        ax.set_ylabel("excess risk")
    for ax in axes[2:]:
        ax.set_xlabel("demonstrations")
    handles, names = axes[1].get_legend_handles_labels()
    for ax, part in zip(axes[:2], (slice(0, 2), slice(2, None)), strict=True):
        ax.legend(handles[part], names[part], loc="lower left")
    return figure


def plot_layer(ax, dataset, layer):
    prefix = dataset.prefix.values[1:]
    curves(ax, dataset, layer)
    if layer in RULE:
        places = np.unique(np.geomspace(1, len(prefix), 12).round().astype(int)) - 1
        simulated = dataset.simulated.sel(rule=RULE[layer], prefix=prefix)[places]
        dots = dict(ls="", marker="o", ms=2.5, color=style.BLACK, mfc="white")
        ax.plot(prefix[places], simulated, label="the rule, simulated", **dots)
    for depth, color in zip(DEPTHS, COLOURS, strict=False):
        runs = dataset.risk.sel(layer=layer, depth=depth, prefix=prefix).transpose("run", "prefix")
        name = f"trained, {depth} layer{'s' * (depth > 1)}"
        style.band(ax, prefix, runs, name, color, marker=None)


def plot_stacks(ax, dataset, stacks, layer):
    prefix = dataset.prefix.values[1:]
    curves(ax, dataset, layer)
    named = (("two layers, x then y", "interleaved"), ("two layers, bound", "bound"))
    for (name, tokens), color in zip(named, COLOURS, strict=False):
        runs = stacks.risk.sel(tokens=tokens, prefix=prefix).transpose("run", "prefix")
        style.band(ax, prefix, runs, name, color, marker=None)


def curves(ax, dataset, layer):
    """The closed curves of ridge regression and of the layer's rule, and the length in training."""
    config, prefix = results.config_of(dataset), dataset.prefix.values[1:]
    ticks = sorted({1, config.n // 4, *(config.n * k for k in (1, *TIMES))})
    style.log_axes(ax, x=True, y=True, ticks=ticks)
    closed = dataset.closed.sel(prefix=prefix)
    style.line(ax, prefix, closed.sel(rule="ridge"), "ridge (Bayes)", "0.6", ":")
    if layer in RULE:
        style.line(ax, prefix, closed.sel(rule=RULE[layer]), "closed curve", style.BLACK)
    ax.axvline(config.n, 0.35, color="grey", lw=0.8, ls="--")  # above the legends


def caption(dataset) -> str:
    config, curves = results.config_of(dataset), claims.numbers(dataset)
    rules = [layer for layer in config.layers if layer in RULE]
    longest, ridge = TIMES[-1], dataset.closed.sel(rule="ridge")
    most = max(float(np.median(curves.over_curve(curves.layers(layer), layer))) for layer in rules)
    trained = dataset.risk.sel(layer="delta", depth=DEPTHS[0]).median("run")
    null = max(float(np.median(curves.nearness(layer))) for layer in rules)
    two = curves.near(dataset.risk.sel(depth=DEPTHS[-1]).reindex(layer=["mesa"]), longest)
    stuck = int((two > 10 * two.median()).sum())
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    stays, falls = (float(curves.near(risk, longest)) for risk in (trained, ridge))
    return (
        f"In the median run one recurrent layer has at most {most:.2f} times the mean risk of its "
        "rule's closed curve. Beyond the dashed line prompts are longer than in training: at "
        f"{longest} times its length DeltaNet's risk is {stays:.2g}, ridge's {falls:.2g}. "
        f"{stuck} of {config.runs} two-layer mesa stacks learned little. A layer "
        f"is {1 / null:.0f} times nearer to its rule than to ridge on another task. Bands hold the "
        f"middle 80 %. {diverged} diverged."
    )
