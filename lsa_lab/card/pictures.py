"""The pictures of a card, as SVG: intervals on a logarithmic axis, and the risk by length."""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from lsa_lab.card.formats import COLOURS, format_number

_MODEL_COLOUR = "#c1440e"
_GREYS = ("#555", "#777", "#999", "#aaa", "#bbb")


def _make_axis(values: Sequence[float], low: float, high: float) -> Callable[[float], float]:
    """Return the map from positive numbers to coordinates on a logarithmic axis."""
    logs = [math.log(max(value, 1e-6)) for value in values]
    first, last = min(logs), max(logs)
    span = (last - first) or 1.0

    def place(value: float) -> float:
        clipped = min(max(math.log(max(value, 1e-6)), first), last)
        return low + (high - low) * (clipped - first) / span

    return place


def draw_intervals(probes: list[dict[str, Any]]) -> str:
    """Return dots with intervals on a logarithmic axis, and the nulls as grey ticks."""
    probes = [p for p in probes if isinstance(p["value"], float | int) and p["interval"]]
    ends = [end for p in probes for end in (p["value"], *p["interval"], p["null"])]
    ends = [end for end in ends if isinstance(end, float | int) and end > 0]
    if not probes or not ends:
        return ""
    place, height = _make_axis([*ends, max(ends) * 1.1], 290, 570), 22 * len(probes) + 22
    marks = []
    for i, probe in enumerate(probes):
        y, colour = 14 + 22 * i, COLOURS[probe["verdict"]]
        low, high = (
            end if isinstance(end, float | int) else probe["value"] for end in probe["interval"]
        )
        marks.append(f'<text x="4" y="{y + 4}" font-size="11">{escape(probe["name"])}</text>')
        marks.append(f'<path d="M{place(low):.1f} {y}H{place(high):.1f}" stroke="{colour}"/>')
        marks.append(f'<circle cx="{place(probe["value"]):.1f}" cy="{y}" r="4" fill="{colour}"/>')
        if probe["null"] is not None and probe["null"] > 0:
            marks.append(f'<path d="M{place(probe["null"]):.1f} {y - 7}v14" stroke="#999"/>')
    style = f'y="{height - 4}" font-size="10" fill="#666" text-anchor="middle"'
    extremes = min(ends), max(ends)
    marks += [f'<text x="{place(v):.0f}" {style}>{format_number(v)}</text>' for v in extremes]
    return f'<svg viewBox="0 0 590 {height}" width="590">{"".join(marks)}</svg>'


def draw_risks(body: dict[str, Any]) -> str:
    """Return the risk by length, one line for each run, and the closed curves of rules in grey."""
    curves = body["curves"]["risk"]
    places, rules = curves["places"], curves["rules"]
    values = [v for run in curves["runs"] for v in run if isinstance(v, float | int)]
    values += [curve[t] for curve in rules.values() for t in places]
    if not values:
        return ""
    up, across = _make_axis(values, 230, 15), lambda t: 40 + 380 * t / max(places)

    def draw_line(points: Any, colour: str, width: float, dash: str = "") -> str:
        path = " ".join(f"{across(t):.1f},{up(v):.1f}" for t, v in points)
        return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                f'{dash}/>')  # fmt: skip

    marks, labels, model_height = [], [], 15.0
    for i, (name, curve) in enumerate(rules.items()):
        dash = f' stroke-dasharray="{2 + 2 * i} 2"' if i < len(rules) - 1 else ""
        marks.append(draw_line(enumerate(curve), _GREYS[-1 - i], 1.5, dash))
        labels.append([up(curve[-1]) + 4, name, _GREYS[-1 - i]])
    for run in curves["runs"]:
        points = [(t, v) for t, v in zip(places, run, strict=True) if isinstance(v, float | int)]
        if points:
            marks.append(draw_line(points, _MODEL_COLOUR, 1.3))
            model_height = up(points[-1][1]) + 4
    labels.append([model_height, body["name"], _MODEL_COLOUR])
    marks += _draw_labels(labels)
    marks += [f'<text x="{across(t):.0f}" y="256" font-size="10" text-anchor="middle">{t}</text>'
              for t in (0, max(places) // 2, max(places))]  # fmt: skip
    marks += [f'<text x="4" y="{up(v) + 3:.0f}" font-size="10" fill="#666">{v:.2g}</text>'
              for v in (min(values), max(values))]  # fmt: skip
    title = "horizontal: demonstrations; vertical: risk, logarithmic"
    axis = f'<text x="230" y="272" font-size="11" text-anchor="middle">{title}</text>'
    return f'<svg viewBox="0 0 610 292" width="610">{"".join(marks)}{axis}</svg>'


def _draw_labels(labels: list[list]) -> list[str]:
    """Return the texts at the ends of curves [height, name, colour], at least 12 pixels apart."""
    labels.sort(key=lambda label: label[0])
    for upper, lower in pairwise(labels):
        lower[0] = max(lower[0], upper[0] + 12)
    return [f'<text x="426" y="{y:.0f}" font-size="11" fill="{colour}">{escape(name)}</text>'
            for y, name, colour in labels]  # fmt: skip
