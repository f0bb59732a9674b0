"""The figure of `many_shot_flow`, drawn from its result alone."""

import numpy as np

from experiments.flow.many_shot_flow.duplicates import KINDS, LEARNERS
from lsa_lab import results
from lsa_lab.harness import style

LOOKS = dict(zip(KINDS, zip(style.COLOURS, style.MARKERS, strict=True), strict=True))


SIZE = "|log ratio| of two flows"


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 6.4, (2, 3))
    most = dataset.sel(correlation=0).isel(count=-1)
    change = most.spread / most.spread.isel(layer=0)
    layers = dataset.layer.values
    _draw_depth(axes[0], change, int(most["count"]), settings)
    _draw_turned(axes[1], most)
    for ax in axes[:2]:
        ax.set(xlabel="layers", xticks=layers)
    _draw_counts(axes[2:4], dataset)
    _draw_duplicates(axes[4:], dataset)
    axes[0].legend(ncols=2, loc="upper left")
    for ax in (axes[1], axes[4]):
        ax.legend(loc="lower left")
    grown = {kind: float(change.sel(kind=kind).isel(layer=-1).median()) for kind in KINDS}
    style.caption(
        drawn,
        f"Depth changes the disparity of many demonstrations little, and either way: over "
        f"{layers[-1]} layers by {_percent(grown['linear'])} (trained linear), "
        f"{_percent(grown['softmax'])} (trained softmax), {_percent(grown['descent'])} (descent "
        f"with the step that is best for one layer, which overshoots in four), "
        f"{_percent(grown['short steps'])} (with {settings.short:g} of it). (b) A ratio whose sign "
        f"one layer decides is largest there: it falls or rises by regression to the mean. (e) "
        f"Filled: one demonstration of {settings.count} has a near-duplicate, in place of another; "
        f"open: all do, mean flow. (f) Filled: duplicates; open: other pairs. Below 0, two do less "
        f"together than apart. Median of {settings.runs} runs, each of {settings.prompts} prompts, "
        f"and the middle 80 % of them; {int(dataset.lost)} numbers left out as not finite. "
        f"d = {settings.d}, trained with {settings.n} shots.",
    )
    return drawn


def _draw_depth(ax, change, count, settings):
    for i, kind in enumerate(KINDS):
        x = change.layer.values + 0.07 * (i - 2.5)
        _draw(ax, x, change.sel(kind=kind), LOOKS[kind], kind)
    ax.axhline(1, color="grey", lw=0.8)
    ax.axhline(settings.growth, color="grey", lw=0.8, ls="--")
    ax.set(title=f"depth, {count} demonstrations", ylabel=f"{SIZE}, over layer 1")
    ax.set_ylim(top=1.35 * float(change.max()))


def _draw_turned(ax, most):
    names = {"spread": "without a sign", "from_first": "turned by layer 1"}
    names |= {"from_last": "turned by the last layer"}
    for i, (name, label) in enumerate(names.items()):
        look = style.BLACK if i == 0 else "grey", style.MARKERS[i]
        _draw(ax, most.layer.values, most[name].sel(kind="descent"), look, label)
    ax.set(title="descent, pairs turned", ylabel=SIZE, ylim=(0, None))


def _draw_counts(axes, dataset):
    counts, last = dataset["count"].values, dataset.sel(correlation=0).isel(layer=-1)
    for i, kind in enumerate(KINDS):
        x = counts * np.exp(0.07 * (i - 2.5))
        for ax, name in zip(axes, ("top_share", "spread"), strict=True):
            _draw(ax, x, last[name].sel(kind=kind), LOOKS[kind], kind)
    axes[0].set(title="the strongest", ylabel="largest share of the flow")
    axes[1].set(title="two among n, last layer", ylabel=SIZE, ylim=(0, None))
    axes[0].plot(counts, 1 / counts, ":", color=style.BLACK, label="1/n")
    for ax in axes:
        style.log_axes(ax, x=True, y=ax is axes[0], ticks=counts)
        ax.set(xlabel="demonstrations n")
    axes[0].set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    axes[0].legend([axes[0].lines[-1]], ["1/n"])


def _draw_duplicates(axes, dataset):
    """Filled: one has a near-duplicate, or the duplicates; open: all do, or the other pairs."""
    c, end = dataset.correlation.values, dataset.isel(layer=-1)
    for i, kind in enumerate(LEARNERS):
        x, there = c + 0.02 * (i - 1.5), end.sel(kind=kind)
        _draw(axes[0], x[1:], there.away[1:], LOOKS[kind], kind)
        _draw(axes[0], x[1:], there.redundancy[1:], LOOKS[kind], None, face="white")
        _draw(axes[1], x, there.duplicates, LOOKS[kind], kind)
        _draw(axes[1], x, there.others, LOOKS[kind], None, face="white")
    axes[0].set(title="flow beside duplicates", ylabel="change of its logarithm")
    axes[1].set(title="two together", ylabel="interaction / effect of one")
    for ax in axes:
        ax.axhline(0, color="grey", lw=0.8)
        ax.set(xlabel="correlation c of a duplicate", xticks=c)


def _draw(ax, x, samples, look, label, face=None):
    """Points with bars, joined by a thin line."""
    color, marker = look
    samples = samples.transpose("run", ...).values
    style.band(ax, x, samples, label, color, marker)
    ax.lines[-1 if face is None else -3].set_markerfacecolor(face or color)
    ax.plot(x, np.median(samples, axis=0), color=color, lw=0.6)


def _percent(ratio):
    return f"{ratio - 1:+.0%}".replace("-", "\u2212")
