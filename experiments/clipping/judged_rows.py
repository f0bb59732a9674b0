"""Judged statements as rows of a panel: value, interval, and the numbers that keep the bound."""

import numpy as np

from lsa_lab.claims import judge
from lsa_lab.harness import style

COLOURS = {"holds": style.COLOURS[2], "fails": style.COLOURS[1], "undecided": "grey"}


def judged_rows(ax, statements, samples, labels, scale=None):  # labels {id: text}
    """A row for each of ``labels``, from the top; grey are the values that keep its criterion.

    ``scale`` is set on the axis before limits are read: grey reaches to the end of the panel.
    """
    rows = [statement for statement in statements if statement.id in labels]
    claims = judge(rows, {row.id: samples[row.id] for row in rows})
    if scale is not None:
        ax.set_xscale(**scale)
    places = np.array([-list(labels).index(row.id) for row in rows])
    for place, claim in zip(places, claims, strict=True):
        ends = np.clip(claim.interval, -1e9, 1e9)  # of two runs they may be anywhere
        ax.plot(ends, [place, place], color=COLOURS[claim.verdict], lw=1.5)
        ax.plot(claim.value, place, "o", color=COLOURS[claim.verdict])
    limits = ax.get_xlim()
    finite = [bound for row in rows for bound in row.bounds if np.isfinite(bound)]
    left, right = min(limits[0], *finite), max(limits[1], *finite)
    for place, row in zip(places, rows, strict=True):
        low, high = np.clip(row.bounds, left, right)
        ax.fill_betweenx([place - 0.4, place + 0.4], low, high, color="grey", alpha=0.2, lw=0)
        for bound in row.bounds:
            if np.isfinite(bound):
                ax.plot([bound, bound], [place - 0.4, place + 0.4], color=style.BLACK, lw=1)
    ax.set_xlim(left, right)
    ax.set_yticks(-np.arange(len(labels)), list(labels.values()))
    ax.set_ylim(0.6 - len(labels), 0.6)
