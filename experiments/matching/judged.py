"""What is judged, as a picture: each row's value, its 95 % interval, and where it would hold."""

import numpy as np

from lsa_lab import claims
from lsa_lab.harness import style

COLOURS = {"holds": style.COLOURS[2], "fails": style.COLOURS[1], "undecided": style.BLACK}
KEY = (
    "what is judged, with 95 % intervals; grey: where a row would hold; green holds, orange fails, "
    "black is undecided"
)


def rows(ax, statements, samples, names, span):  # {id: name}, (left, right)
    """The rows of ``names`` from top to bottom: grey where a row would hold, coloured by verdict.

    What lies beyond the span is drawn at its end.
    """
    kept = [statement for statement in statements if statement.id in names]
    judged = claims.judge(kept, {id: samples[id] for id in names})
    by_id = {claim.id: (statement, claim) for statement, claim in zip(kept, judged, strict=True)}
    for place, id in enumerate(names):
        statement, claim = by_id[id]
        low, high = np.clip(statement.bounds, *span)
        ax.barh(-place, high - low, 0.8, low, color="grey", alpha=0.2, lw=0)
        left, value, right = np.clip([claim.interval[0], claim.value, claim.interval[1]], *span)
        look = {"fmt": "o", "capsize": 2, "elinewidth": 1.0, "color": COLOURS[claim.verdict]}
        ax.errorbar(value, -place, xerr=[[value - left], [right - value]], **look)
    ax.set_yticks([-place for place in range(len(names))], list(names.values()))
    ax.set(xlim=span, ylim=(0.4 - len(names), 0.6))
