"""How unequal many demonstrations are with depth and number, and beside duplicates."""

import numpy as np

from experiments.flow.many_shot_flow.claims import grown
from experiments.flow.many_shot_flow.statements import KINDS, LEARNERS
from lsa_lab import results
from lsa_lab.harness import style

LOOKS = dict(zip(KINDS, zip(style.COLOURS, style.MARKERS, strict=True), strict=True))
SIZE = "|log ratio| of two flows"


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 6.0, (2, 3))
    most = dataset.sel(correlation=0).isel(count=-1)
    _draw_depth(axes[0], most, config)
    _draw_turned(axes[1], most)
    for ax in axes[:2]:
        ax.set(xlabel="layers", xticks=dataset.layer.values)
    _draw_counts(axes[2:4], dataset)
    _draw_duplicates(axes[4:], dataset)
    axes[0].legend(ncols=2, loc="upper left")
    for ax in (axes[1], axes[4]):
        ax.legend(loc="lower left")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    most = dataset.sel(correlation=0).isel(count=-1)
    growth = {kind: float(grown(most.spread).sel(kind=kind).median()) for kind in KINDS}
    away = dataset.away.isel(layer=-1, correlation=-1).sel(kind=list(LEARNERS)).median("run")
    least, largest = (_percent(np.exp(float(end))) for end in (away.max(), away.min()))
    left = dataset.risk.median("run")
    risks = ", ".join(f"{float(left.sel(kind=kind)):.1%} ({kind})" for kind in LEARNERS)
    blown = int((dataset.risk.sel(kind="linear") > 1).sum())
    return (
        f"Depth changes the disparity of many demonstrations by {_percent(min(growth.values()))} "
        f"to {_percent(max(growth.values()))}, depending on the "
        f"stack; a flow beside a near-duplicate changes by {least} to {largest}. With depth: "
        f"{_percent(growth['linear'])} (trained linear), {_percent(growth['softmax'])} (trained "
        f"softmax), {_percent(growth['descent'])} (descent with the step that is best for one "
        f"layer, which overshoots in {config.depth}), {_percent(growth['short steps'])} (with "
        f"{config.short:g} of it). (b) A ratio whose sign one layer decides is largest there: it "
        "falls or rises by regression to the mean. (e) "
        f"Filled: one demonstration of {config.count} has a near-duplicate, in place of another; "
        "open: all do, mean flow. (f) Filled: duplicates; open: other pairs. Below 0, two do less "
        f"together than apart. Median of {config.runs} runs, each of {config.prompts} prompts, "
        f"and its 95 % interval; {int(dataset.lost)} numbers left out as not finite. "
        f"d = {config.d}, trained with {config.n} shots, at which least squares leaves nothing of "
        f"the error of predicting 0, and these stacks, in the median run, {risks}; "
        f"in {blown} runs of trained linear attention a few prompts overshoot by more than that."
    )


def _draw_depth(ax, most, config):
    change = most.spread / most.spread.isel(layer=0)
    for i, kind in enumerate(KINDS):
        x = change.layer.values + 0.07 * (i - 2.5)
        _draw(ax, x, change.sel(kind=kind), LOOKS[kind], kind)
    ax.axhline(1, color="grey", lw=0.8)
    ax.axhline(config.growth, color="grey", lw=0.8, ls="--")
    ax.set(title=f"depth, {config.counts[-1]} demonstrations", ylabel=f"{SIZE}, over layer 1")
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
        x, of_kind = c + 0.02 * (i - 1.5), end.sel(kind=kind)
        _draw(axes[0], x[1:], of_kind.away[1:], LOOKS[kind], kind)
        _draw(axes[0], x[1:], of_kind.redundancy[1:], LOOKS[kind], None, face="white")
        _draw(axes[1], x, of_kind.duplicates, LOOKS[kind], kind)
        _draw(axes[1], x, of_kind.others, LOOKS[kind], None, face="white")
    axes[0].set(title="flow beside duplicates", ylabel="change of its logarithm")
    axes[1].set(title="two together", ylabel="interaction / effect of one")
    for ax in axes:
        ax.axhline(0, color="grey", lw=0.8)
        ax.set(xlabel="correlation c of a duplicate", xticks=c)


def _draw(ax, x, samples, look, label, face=None):
    """Medians with the intervals that are judged, joined by a thin line."""
    color, marker = look
    look = {"color": color, "mfc": face or color, "capsize": 2, "elinewidth": 0.8, "lw": 0.6}
    samples = samples.transpose("run", ...)
    style.median_points(ax, x, samples, label, fmt=f"{marker}-", **look)


def _percent(ratio):
    return f"{ratio - 1:+.0%}".replace("-", "\u2212")
