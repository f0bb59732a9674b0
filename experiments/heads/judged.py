"""A panel of what an experiment judges: values with their intervals, and what they are to keep."""

import numpy as np

from lsa_lab.claims import judge
from lsa_lab.harness import style


def rows(ax, statements, samples: dict, labels: dict[str, str], wide: float = 2.0) -> None:
    """A row for each id of ``labels`` that is judged: its value and interval, its bounds in green.

    The axis is logarithmic, for ratios, and goes ``wide`` times beyond the values at most.
    """
    by_id = {statement.id: statement for statement in statements}
    claims = [claim for claim in judge(statements, samples) if claim.id in labels]
    claims = sorted(claims, key=lambda claim: list(labels).index(claim.id))
    values = np.array([claim.value for claim in claims])
    bounds = np.array([by_id[claim.id].bounds for claim in claims])
    kept = np.concatenate([values, bounds[np.isfinite(bounds)]])
    kept = kept[kept > 0]
    left, right = kept.min() / wide, kept.max() * wide
    for y, (claim, (low, high)) in enumerate(zip(claims, bounds, strict=True)):
        low, high = max(low, left), min(high, right)
        ax.barh(y, high - low, 0.8, low, color=style.COLOURS[2], alpha=0.15, lw=0)
        ends = np.clip(claim.interval, left, right)
        ax.plot(ends, [y, y], "-", color=style.BLACK, lw=1.0)
        ax.plot(claim.value, y, "o", color=style.BLACK)
    ax.set_yticks(range(len(claims)), [labels[claim.id] for claim in claims], fontsize=7)
    style.log_axes(ax, x=True, ticks=[t for t in (0.25, 0.5, 1, 2, 4, 8, 16) if left < t < right])
    ax.set(xlim=(left, right), ylim=(len(claims) - 0.4, -0.6))
