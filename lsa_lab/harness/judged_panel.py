"""What is judged, as a panel: a row for each statement, with its interval and where it would hold.

The scale of the axis is the caller's, and set before.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lsa_lab.claims import Claim, Statement, judge
from lsa_lab.harness.style import BLACK, COLOURS
from lsa_lab.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[str, dict[str, Any]] = {  # no verdict is told by its colour alone
    "holds": {"color": COLOURS[0], "marker": "o", "ms": 4.5},
    "fails": {"color": COLOURS[1], "marker": "X", "ms": 6.5, "mec": "white"},
    "undecided": {"color": BLACK, "marker": "o", "ms": 4.5, "mfc": "white"},
}
KEY = (  # for captions
    "what is judged, with 95 % intervals; grey: where a row would hold; blue dots hold, orange "
    "crosses fail, black rings are undecided; arrows and numbers: beyond the axis"
)


def rows(
    ax: "Axes",
    statements: Iterable[Statement],
    samples: Mapping[str, Any],
    labels: Mapping[str, str],
    span: Interval,
) -> None:
    """The statements that ``labels`` {id: text} names, from the top; none that has None to judge.

    The axis is ``span``. An interval that leaves it ends in an arrow at the edge; a value beyond it
    is written there, beside an open triangle, so that nobody takes the edge for the value.
    """
    by_id = {statement.id: statement for statement in statements}
    kept = [by_id[id] for id in labels if samples[id] is not None]
    claims = judge(kept, {statement.id: samples[statement.id] for statement in kept})
    for row, (statement, claim) in enumerate(zip(kept, claims, strict=True)):
        _region(ax, row, statement.bounds, span)
        _interval(ax, row, claim, span)
    ax.set_yticks(range(len(kept)), [labels[statement.id] for statement in kept], fontsize=7)
    ax.set(xlim=span, ylim=(len(kept) - 0.4, -0.6))


def _region(ax: "Axes", row: int, bounds: Interval, span: Interval) -> None:
    """Where the row would hold, with a line at each bound."""
    low, high = np.clip(bounds, *span)
    ax.barh(row, high - low, 0.8, low, color="grey", alpha=0.2, lw=0)
    inside = [bound for bound in bounds if span[0] <= bound <= span[1]]
    ax.vlines(inside, row - 0.4, row + 0.4, color="grey", lw=1)


def _interval(ax: "Axes", row: int, claim: Claim, span: Interval) -> None:
    point = LOOKS[claim.verdict]
    look = {"color": point["color"], "clip_on": False, "zorder": 3}
    ax.plot(np.clip(claim.interval, *span), [row, row], "-", **look)
    beyond = (claim.interval[0] < span[0], claim.interval[1] > span[1])
    for edge, arrow, leaves in zip(span, "<>", beyond, strict=True):
        if leaves:
            ax.plot(edge, row, arrow, ms=4, **look)
    if span[0] <= claim.value <= span[1]:
        ax.plot(claim.value, row, mew=0.8, **(point | look))
        return
    right = int(claim.value > span[1])
    ax.plot(span[right], row, "<>"[right], mfc="white", ms=6, **look)
    ax.annotate(
        f"{claim.value:.3g}".replace("-", "\u2212"),
        (span[right], row),
        (-6 if right else 6, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="center",
        fontsize=7,
        bbox={"facecolor": "white", "lw": 0, "pad": 0.5},
        zorder=4,
    )
