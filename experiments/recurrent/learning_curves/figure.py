"""A panel for each layer: the closed curve of its rule, the rule simulated, and what is trained."""

import numpy as np

from experiments.recurrent.learning_curves import claims
from experiments.recurrent.learning_curves.config import DEPTHS, NAMES, RULE, TIMES
from lsa_lab.harness.draw import style
from lsa_lab.store import parts, results

STUCK = 1.5  # times the risk of its closed curve: a run so far above it has not learned

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
    kinds = [layer for layer in ("delta", "mesa") if layer in dataset.layer.values]  # smoke: one
    fill(axes, dataset, kinds)
    axes[len(kinds) - 1].legend(loc="lower left")
    return figure


def appendix(dataset):
    """Every layer; and two layers after a longer training, on bound and on interleaved tokens."""
    every, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1, 1), (1, 1, 1)), "c")
    fill(axes, dataset, dataset.layer.values)
    legends(axes[0], (axes[0], axes[5]), 3)
    longer, axes = style.figure(6.75, 4.4, (2, 2), first="i")
    stacks = parts.part(dataset, "stacks")
    named = {"two layers, x then y": "interleaved", "two layers, bound": "bound"}
    for ax, layer in zip(axes, stacks.layer.values, strict=False):
        curves(ax, dataset, layer)
        bands(ax, {name: stacks.sel(tokens=named[name], layer=layer) for name in named})
        ax.set(title=BOUND[layer], ylim=(0.0004, 1.6))
    label(axes, 2)
    legends(axes[1], axes[:2], 2)
    return every, longer


def fill(axes, dataset, layers):
    """A panel for each layer: its rule, and one and two layers of it."""
    for ax, layer in zip(axes, layers, strict=False):
        curves(ax, dataset, layer)
        if layer in RULE:
            prefix = dataset.prefix.values[1:]
            places = np.unique(np.geomspace(1, len(prefix), 12).round().astype(int)) - 1
            simulated = dataset.simulated.sel(rule=RULE[layer], prefix=prefix)[places]
            dots = dict(ls="", marker="o", ms=2.5, color=style.BLACK, mfc="white")
            ax.plot(prefix[places], simulated, label="the rule, simulated", **dots)
        names = {f"trained, {depth} layer{'s' * (depth > 1)}": depth for depth in DEPTHS}
        bands(ax, {name: dataset.sel(layer=layer, depth=names[name]) for name in names})
        ax.set(title=TITLES[layer], ylim=(0.4 * float(dataset.closed[:, -1].min()), 1.5))
    label(axes, min(len(axes), 3))


def label(axes, columns):
    for ax in axes[::columns]:
        ax.set_ylabel("excess risk")
    for ax in axes[-columns:]:
        ax.set_xlabel("demonstrations")


def legends(ax, places, count):
    """The legend of one panel split between two, the first names in the first."""
    handles, names = ax.get_legend_handles_labels()
    for place, part in zip(places, (slice(count), slice(count, None)), strict=True):
        place.legend(handles[part], names[part], loc="lower left")


def bands(ax, named):
    """The risks of runs by the name of their line."""
    for (name, runs), color in zip(named.items(), COLOURS, strict=False):
        risk = runs.risk.isel(prefix=slice(1, None)).transpose("run", "prefix")
        style.band(ax, risk.prefix, risk, name, color, marker=None)


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
    rules = [NAMES[layer] for layer in config.layers if layer in RULE]
    longest, ridge = TIMES[-1], dataset.closed.sel(rule="ridge")
    over = {kind: curves.over_curve(curves.layers(kind), kind) for kind in rules}
    most = max(float(np.median(runs)) for runs in over.values())
    late = {kind: int((runs > STUCK).sum()) for kind, runs in over.items()}
    late = " and ".join(f"{count} ({kind})" for kind, count in late.items() if count)
    trained = dataset.risk.sel(layer="delta", depth=DEPTHS[0]).median("run")
    null = max(float(np.median(curves.nearness(kind))) for kind in rules)
    two = curves.near(dataset.risk.sel(depth=DEPTHS[-1]).reindex(layer=["mesa"]), longest)
    stuck = int((two > 10 * two.median()).sum())
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    stays, falls = (float(curves.near(risk, longest)) for risk in (trained, ridge))
    return (
        f"The median recurrent layer has at most {most:.2f} times the risk of its "
        f"rule's closed curve; {late or 'none'} of {config.runs} runs did not learn. "
        f"At {longest} times the training length (dashed) DeltaNet's risk is "
        f"{stays:.2g}, ridge's {falls:.2g}. Of mesa stacks {stuck} learned little"
        f"{' and widens the band' * (stuck == 1)}; {diverged} stacks diverged. A layer is "
        f"{1 / null:.0f} times nearer to its rule than to ridge on another task. Bands: middle "
        "80 %."
    )
