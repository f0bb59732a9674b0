"""How unequal many demonstrations are with depth, beside the Bayes rule and beside duplicates."""

import numpy as np

from experiments.flow.many_shot_flow import claims
from experiments.flow.many_shot_flow.config import KINDS, LEARNERS, NAMES
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import parts, results

OPEN = {"mfc": "white", "ls": "--"}
LOOKS = {
    "descent": style.METHOD["descent"],
    "short steps": style.METHOD["descent"] | OPEN,
    "linear, untrained": style.METHOD["linear"] | OPEN,
    "linear": style.METHOD["linear"],
    "softmax, untrained": style.METHOD["softmax"] | OPEN,
    "softmax": style.METHOD["softmax"],
}
TRAINED = dict(zip(NAMES, ("linear", "softmax", "softmax, norm, MLP"), strict=True))
PANELS = {  # title: families, label and limits of the axis
    "end / the Bayes rule's": (("ends_at_bayes", "ends_at_least_squares"), "ratio", (0.4, 3.6)),
    "last layer / first": (("depth",), "ratio of |log ratio|", (0.6, 1.6)),
    "lead less Bayes's; correlation": (
        ("lead_ends_at_bayes", "listens_as_bayes"),
        "log ratio, or correlation",
        (-0.15, 1.02),
    ),
    "near-duplicates": (("explained_away", "redundancy"), "change of log flow", (-0.3, 0.1)),
}


def plot(dataset):
    null = parts.part(dataset, "null")
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    disparity = null.trained_disparity
    names = [name for name in NAMES if name in null.trained]
    ends = disparity.isel(trained_place=-1)
    over = (disparity / ends).isel(trained_place=slice(-1))
    for ax, values in zip(axes, (over, null.trained_agreement), strict=True):
        rows = {name: values.sel(trained=name).transpose("trained_run", ...) for name in names}
        layers = np.arange(values.shape[-1]) + 1
        for i, (name, row) in enumerate(rows.items()):
            _draw(ax, layers + 0.05 * (i - 1), row, style.METHOD[TRAINED[name]])
        heights = {name: float(row[:, -1].median()) for name, row in rows.items()}
        marks.end_labels(ax, heights, [style.METHOD[TRAINED[name]]["color"] for name in names])
        ax.set(xlabel="layers", xticks=layers)
        ax.axhline(1, color="grey", lw=0.8)
    axes[0].axhspan(1 / claims.GROWTH, claims.GROWTH, color="grey", alpha=0.2, lw=0)
    axes[0].set(title="Models end as Bayes does", ylabel="|log ratio| / Bayes rule's")
    axes[1].set(title="Flows become Bayes's", ylabel="correlation of log flows")
    return figure


def appendix(dataset):
    """The stacks that are not near ridge regression, near-duplicates, and what is judged."""
    config, judged = results.config_of(dataset), evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.6, 2.8, 2.0), ((1, 1), (1, 1), (1, 1)), "c")
    _draw_depth(axes[0], dataset.spread.sel(correlation=0), config)
    c, end = dataset.correlation.values, dataset.isel(layer=-1).away
    for i, kind in enumerate(LEARNERS):
        x = c + 0.01 * (i - 1.5) * (c > 0)
        _draw(axes[1], x, end.sel(kind=kind).transpose("run", ...), LOOKS[kind])
    axes[1].set(xlabel="correlation with its duplicate", xticks=c)
    axes[1].set(title="flow beside a duplicate", ylabel="change of its logarithm")
    _name(axes[1], end.isel(correlation=-1), LEARNERS)
    for ax, (title, (families, label, limits)) in zip(axes[2:], PANELS.items(), strict=True):
        ids = [cell.id for cell in cells_of(judged[0]) if cell.family in families]
        judged_panel.rows(ax, *judged, limits, ids)
        ax.set(title=title, xlabel=label)
    return figure


def caption(dataset) -> str:
    config, null = results.config_of(dataset), parts.part(dataset, "null")
    names = [name for name in NAMES if name in null.trained]
    values = null.trained_disparity.sel(trained=names).median("trained_run")
    ends = values.isel(trained_place=-2) / values.isel(trained_place=-1)
    last = null.trained_agreement.sel(trained=names).median("trained_run")[:, -1]
    left = dataset.risk.median("run")
    linear, softmax = (f"{float(left.sel(kind=kind)):.1%}" for kind in ("linear", "softmax"))
    return (
        f"In models near ridge regression two flows end {float(ends.min()):.2f} to "
        f"{float(ends.max()):.2f} times as unequal as the Bayes rule's on the same prompts. "
        f"The last layer's log flows correlate by {float(last.min()):.2f} to "
        f"{float(last.max()):.2f} with them. The grey band is 10 %. c: open marks are untrained or "
        "have short steps. d: one of "
        f"{config.count} demonstrations has a near-duplicate. Briefly trained stacks leave "
        f"{linear} (linear) and {softmax} (softmax) of the error."
    )


def _draw_depth(ax, spread, config):
    change = (spread / spread.isel(layer=0)).transpose("run", ...)
    layers = change.layer.values
    for i, kind in enumerate(KINDS):
        x = layers + 0.05 * (i - 2.5) * (layers > 1)
        _draw(ax, x, change.sel(kind=kind), LOOKS[kind])
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(title=f"{config.most} demonstrations", ylabel="|log ratio| of two flows / layer 1")
    ax.set(xlabel="layers", xticks=layers)
    _name(ax, change.isel(layer=-1), KINDS)


def _draw(ax, x, samples, look):
    """Medians with the intervals that are judged, joined by a line."""
    style.median_points(ax, x, samples, capsize=2, elinewidth=0.8, lw=0.8, **look)


def _name(ax, ends, kinds):
    heights = {kind: float(ends.sel(kind=kind).median()) for kind in kinds}
    marks.end_labels(ax, heights, [LOOKS[kind]["color"] for kind in kinds])
