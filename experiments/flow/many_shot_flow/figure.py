"""How unequal many demonstrations are with depth and number, and beside duplicates."""

import numpy as np

from experiments.flow.many_shot_flow import claims
from experiments.flow.many_shot_flow.config import KINDS, LEARNERS
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

OPEN = {"mfc": "white", "ls": "--"}
LOOKS = {
    "descent": style.METHOD["descent"],
    "short steps": style.METHOD["descent"] | OPEN,
    "linear, untrained": style.METHOD["linear"] | OPEN,
    "linear": style.METHOD["linear"],
    "softmax, untrained": style.METHOD["softmax"] | OPEN,
    "softmax": style.METHOD["softmax"],
}
SIZE = "|log ratio| of two flows"
RATIOS = (
    *("depth_descent", "depth_short_steps", "depth_linear_untrained", "depth_linear"),
    *("depth_softmax_untrained", "depth_softmax", "turned", "top_share"),
    *("same_ratio_linear", "same_ratio_softmax"),
)


def plot(dataset):
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.6, 3.0), ((1, 1), (1, 1)))
    _draw_depth(axes[0], dataset.sel(correlation=0).isel(count=-1), config)
    _draw_duplicates(axes[1], dataset, "away")
    axes[1].set(title="flow beside a duplicate", ylabel="change of its logarithm")
    changes = [id for id in samples if id not in RATIOS]
    judged_panel.rows(axes[2], statements, samples, (0.2, 1.6), RATIOS)
    judged_panel.rows(axes[3], statements, samples, (-0.4, 0.3), changes)
    axes[2].set(title="judged: ratios", xlabel="ratio of log ratios, or of shares")
    axes[3].set(title="judged: near-duplicates", xlabel="change of log flow, or interaction")
    return figure


def appendix(dataset):
    """Which layer turns the pairs, the number of demonstrations, and more about duplicates."""
    figure, axes = style.stacked(6.75, (2.6, 2.6), ((1, 1, 1), (1, 1, 1)), "e")
    _draw_turned(axes[0], dataset.sel(correlation=0).isel(count=-1))
    _draw_counts(axes[1:3], dataset)
    titles = {
        "redundancy": ("all doubled", "change of log mean flow"),
        "duplicates": ("duplicates", "interaction / effect of one"),
        "others": ("other pairs", "interaction / effect of one"),
    }
    for ax, (name, (title, label)) in zip(axes[3:], titles.items(), strict=True):
        _draw_duplicates(ax, dataset, name)
        ax.set(title=title, ylabel=label)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    most = dataset.sel(correlation=0).isel(count=-1)
    growth = {kind: float(claims.growth(most.spread).sel(kind=kind).median()) for kind in KINDS}
    away = dataset.away.isel(layer=-1, correlation=-1).sel(kind=list(LEARNERS)).median("run")
    least, largest = (_percent(np.exp(float(end))) for end in (away.max(), away.min()))
    left = dataset.risk.median("run")
    linear, softmax = (f"{float(left.sel(kind=kind)):.1%}" for kind in ("linear", "softmax"))
    return (
        f"Depth changes the disparity of many demonstrations by {_percent(min(growth.values()))} "
        f"to {_percent(max(growth.values()))}, depending on the stack. A flow beside a "
        f"near-duplicate changes by {least} to {largest}. a: open marks are untrained or have "
        "short steps; descent with the best step of one layer overshoots. b: one of "
        f"{config.count} demonstrations has a near-duplicate. Below 0, "
        "two duplicates together help less than their separate effects. "
        f"Trained stacks leave {linear} (linear) and {softmax} "
        f"(softmax) of the error. {config.runs} runs of {config.prompts} prompts."
    )


def _draw_depth(ax, most, config):
    change = most.spread / most.spread.isel(layer=0)
    for i, kind in enumerate(KINDS):
        x = change.layer.values + 0.05 * (i - 2.5) * (change.layer.values > 1)
        _draw(ax, x, change.sel(kind=kind), LOOKS[kind])
    ax.axhline(1, color="grey", lw=0.8)
    ax.axhline(claims.GROWTH, color="grey", lw=0.8, ls="--")
    ax.set(title=f"depth, {config.counts[-1]} demonstrations", ylabel=f"{SIZE} / layer 1")
    ax.set(xlabel="layers", xticks=change.layer.values)
    _name(ax, change.isel(layer=-1), KINDS)


def _draw_turned(ax, most):
    names = {"spread": "no sign", "from_first": "turned by\nlayer 1"}
    names |= {"from_last": "turned by\nlast layer"}
    places = {"spread": (3, 3), "from_first": (0, -5), "from_last": (4, -4)}
    for i, (name, label) in enumerate(names.items()):
        color = "grey" if i else style.BLACK
        values = most[name].sel(kind="descent")
        _draw(ax, most.layer.values, values, {"color": color, "marker": style.MARKERS[i]})
        layer = -1 if name == "from_first" else 0
        height = float(values.isel(layer=layer).median())
        place = most.layer.values[layer]
        marks.direct_label(ax, place, height, label, color, places[name])
    ax.set(title="descent", ylabel=SIZE, ylim=(0, None), xlabel="layers", xticks=most.layer.values)


def _draw_counts(axes, dataset):
    counts, last = dataset["count"].values, dataset.sel(correlation=0).isel(layer=-1)
    for i, kind in enumerate(KINDS):
        x = counts * np.exp(0.07 * (i - 2.5))
        for ax, name in zip(axes, ("top_share", "spread"), strict=True):
            _draw(ax, x, last[name].sel(kind=kind), LOOKS[kind])
    axes[0].set(title="the strongest", ylabel="largest share of the flow")
    axes[1].set(title="two among n", ylabel=f"{SIZE}, last layer", ylim=(0, None))
    axes[0].plot(counts, 1 / counts, ":", color=style.BLACK)
    marks.direct_label(axes[0], counts[1], 1 / counts[1], "1/n", style.BLACK, (-3, -3))
    for ax in axes:
        style.log_axes(ax, x=True, y=ax is axes[0], ticks=counts)
        ax.set(xlabel="demonstrations n")
    axes[0].set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    _name(axes[1], last.spread.isel(count=-1), KINDS)


def _draw_duplicates(ax, dataset, name):
    c, end = dataset.correlation.values, dataset.isel(layer=-1)[name]
    for i, kind in enumerate(LEARNERS):
        _draw(ax, c + 0.01 * (i - 1.5) * (c > 0), end.sel(kind=kind), LOOKS[kind])
    ax.axhline(0, color="grey", lw=0.8)
    ax.set(xlabel="correlation with its duplicate", xticks=c)
    _name(ax, end.isel(correlation=-1), LEARNERS)


def _draw(ax, x, values, look):
    """Medians with the intervals that are judged, joined by a line."""
    samples = values.transpose("run", ...)
    style.median_points(ax, x, samples, capsize=2, elinewidth=0.8, lw=0.8, **look)


def _name(ax, ends, kinds):
    heights = {kind: float(ends.sel(kind=kind).median()) for kind in kinds}
    marks.end_labels(ax, heights, [LOOKS[kind]["color"] for kind in kinds])


def _percent(ratio):
    return f"{ratio - 1:+.0%}".replace("-", "\u2212")
