"""Text formats of a card: its checksum, numbers, intervals, headline and verdict colours."""

import hashlib
import json
import math
from typing import Any

COLOURS = {"holds": "#2a7f4f", "fails": "#b3372f", "undecided": "#a67c00", "": "#555"}


def hash_card(body: dict[str, Any]) -> str:
    """Return the sha256 of the contents of card.json without its entry "sha256"."""
    contents = {key: value for key, value in body.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def format_number(value: Any) -> str:
    """Return a number with three digits, or the symbol of a number that is not finite."""
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "-∞", "nan": "-"}.get(value, value)
    if math.isinf(value):
        return "∞"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def format_interval(probe: dict[str, Any]) -> str:
    """Return the interval of a probe in brackets, or "" if it has none."""
    ends = probe["interval"]
    return "" if ends is None else f"[{format_number(ends[0])}, {format_number(ends[1])}]"


def format_headline(body: dict[str, Any]) -> str:
    """Return one line: the risk at the length in training, the rule, the risk at 8 times that."""
    probes = {probe["name"]: probe for probe in body["probes"]}
    longest = [name for name in probes if name.startswith("risk over Bayes, n")][-1]
    risk = format_number(probes[longest]["value"])
    long_risk = format_number(probes["risk over Bayes, 8 times the length"]["value"])
    rule = probes["nearest rule"]["value"]
    return f"{risk} x Bayes | {rule} | {long_risk} x at 8 times the length"
