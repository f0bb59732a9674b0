"""The pages and the badge of cards, from the contents of card.json, Matplotlib and one template."""

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.card import summary
from lsa_lab.card.identity import LIKE
from lsa_lab.card.tasks import TASKS

_COLOURS = {"holds": "#009E73", "fails": "#D55E00", "undecided": "#767676", "": "#0072B2"}
_STYLE: Any = {
    "font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "card", "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 7,
    "figure.constrained_layout.use": True,
}  # fmt: skip
_WIDTH = 3.6  # inches: a telephone shows the text of a picture at its full size
_METADATA = ("Creator", "Date", "Format", "Type")  # left out
_LINEAR = {"overwriting", "flows", "tracking"}  # groups of shares and accuracies


def render_page(
    kind: str,
    body: dict[str, Any] | None = None,
    *,
    rows: Sequence[dict[str, Any]] = (),
    folder: Path | None = None,
) -> str:
    """Return the HTML of a "card", of its part for a "notebook", or of the "table" of cards."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lsa_lab.card"), autoescape=True, trim_blocks=True
    )
    environment.filters["number"] = summary.format_number
    clone, docs = Path(__file__).resolve().parents[2], ""
    pictures: dict[str, str] = {}
    if body is not None:
        others = [row for row in summary.load_committed() if row["name"] != body["name"]]
        rows = [summary.make_row(body), *others]
        pictures = {} if kind == "notebook" else _draw_pictures(body)
    if folder is not None and folder.resolve().is_relative_to(clone):
        docs = Path(os.path.relpath(clone / "docs/card.md", folder.resolve())).as_posix()
    template = environment.get_template("card.html")
    names = {"kind": kind, "body": body, "rows": rows, "pictures": pictures, "docs": docs}
    return template.render(**names, summary=summary, tasks=TASKS)


def draw_badge(body: dict[str, Any]) -> str:
    """Return the headline as an SVG of one line."""
    import matplotlib
    from matplotlib.figure import Figure

    text = f"lsa_lab | {summary.format_headline(body)}"
    with matplotlib.rc_context(_STYLE):
        figure = Figure((0.075 * len(text) + 0.2, 0.25), facecolor="#35618f")
        figure.text(0.5, 0.5, text, color="white", ha="center", va="center")
        return _to_svg(figure)


def _draw_pictures(body: dict[str, Any]) -> dict[str, str]:
    import matplotlib

    drawings = {"risk": _draw_risks, "growth": _draw_growth, "rules": _draw_rules}
    drawings["training"] = _draw_training
    with matplotlib.rc_context(_STYLE):
        pictures = {f"{name} curve": drawings[name](body) for name in body["curves"]}
        for group in dict.fromkeys(probe["group"] for probe in body["probes"]):
            probes = [p for p in body["probes"] if p["group"] == group and p["samples"]]
            if probes and group != "steps":
                pictures[group] = _draw_samples(probes, group in _LINEAR)
        return pictures


def _make_axes(height: float, **settings: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure((_WIDTH, height))
    return figure, figure.add_subplot(**settings)


def _to_svg(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(_METADATA))
    return file.getvalue()[file.getvalue().index("<svg") :]


def _to_array(rows: Any) -> np.ndarray:
    """Return numbers of card.json as an array, NaN where one is not finite."""
    numbers = np.array(rows, float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _draw_runs(ax: Any, x: Sequence[float], runs: Any) -> None:
    lines = _to_array(runs)
    ax.plot(x, lines.T, color=_COLOURS[""], lw=0.7, alpha=0.5)
    ax.plot([], [], color=_COLOURS[""], label="each run")
    ax.legend()


def _draw_risks(body: dict[str, Any]) -> str:
    curves = body["curves"]["risk"]
    figure, ax = _make_axes(3.0, yscale="log", xlabel="demonstrations", ylabel="risk")
    styles = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
    for style, (name, curve) in zip(reversed(styles), curves["rules"].items(), strict=False):
        ax.plot(curve, color="#555555", ls=style, lw=1, label=name)
    _draw_runs(ax, curves["places"], curves["runs"])
    return _to_svg(figure)


def _draw_rules(body: dict[str, Any]) -> str:
    layers, last = body["curves"]["rules"], body["curves"]["rules"][-1]
    names = list(reversed(last["distances"]))
    figure, ax = _make_axes(0.2 * len(names) + 0.8, xscale="log", xlabel="distance")
    ax.axvspan(1e-9, LIKE, color="#009E73", alpha=0.15, lw=0)
    for i, layer in enumerate(layers[:-1]):
        x = [layer["distances"][name] for name in names]
        ax.scatter(x, names, marker=f"${i + 1}$", s=16, color="#999999", label=f"layer {i + 1}")
    near = {last["name"], *last["tied"]}  # which the card cannot tell from each other
    colours = [_COLOURS[""] if name in near else "none" for name in names]
    x = [last["distances"][name] for name in names]
    ax.scatter(x, names, s=20, c=colours, edgecolors=_COLOURS[""], label="at the end")
    if own := last["own"]:
        ax.scatter(own["distance"], own["name"], s=60, facecolors="none",
                   edgecolors=_COLOURS["fails"], label="its design")  # fmt: skip
    ax.set_xlim(max(min(x), 1e-6) / 1.5, 3)
    figure.legend(loc="outside upper right", ncols=3)
    return _to_svg(figure)


def _draw_growth(body: dict[str, Any]) -> str:
    growth = body["curves"]["growth"]
    figure, ax = _make_axes(
        2.4, xscale="log", yscale="log", xlabel="demonstrations", ylabel="risk over Bayes"
    )
    ax.axhspan(1, summary.BREAK, color="#009E73", alpha=0.15, lw=0)
    ax.axvline(body["n"], color="#999999", lw=0.8, ls=":")
    _draw_runs(ax, growth["lengths"], growth["runs"])
    ticks = growth["lengths"][::2]
    ax.set_xticks(ticks, map(str, ticks))
    ax.set_xticks([], minor=True)
    return _to_svg(figure)


def _draw_training(body: dict[str, Any]) -> str:
    training, risk = body["curves"]["training"], body["curves"]["risk"]
    figure, ax = _make_axes(2.4, yscale="log", xlabel="step", ylabel="loss of training")
    if bayes := risk["rules"].get("ridge, the Bayes rule"):
        places = range(len(bayes)) if body["causal"] else risk["places"]
        level = np.mean([bayes[place] for place in places]) + body["noise_std"] ** 2
        ax.axhline(level, color="#555555", lw=1, ls="--", label="the Bayes rule")
    _draw_runs(ax, training["steps"], training["runs"])
    return _to_svg(figure)


def _draw_samples(probes: list[dict[str, Any]], linear: bool) -> str:
    figure, ax = _make_axes(0.42 * len(probes) + 0.4, xscale="linear" if linear else "log")
    least = -math.inf if linear else 1e-9
    for y, probe in enumerate(reversed(probes)):
        samples = np.maximum(_to_array(probe["samples"]), least)
        colour, null = _COLOURS[probe["verdict"]], probe["null"]
        ax.scatter(samples, np.full(len(samples), y), s=14, color=colour, alpha=0.6, lw=0)
        median = float(probe["value"])
        if np.isfinite(median):
            ax.vlines(max(median, least), y - 0.2, y + 0.2, color=colour)
        if null is not None and np.isfinite(float(null)) and (linear or float(null) > 0):
            ax.plot(float(null), y, marker="x", color="#555555", ms=5)
        ax.text(0, y + 0.28, probe["name"], transform=ax.get_yaxis_transform(), fontsize=8)
    ax.set(ylim=(-0.5, len(probes) - 0.3), yticks=[])
    bounds = [(p["at_least"], p["at_most"]) for p in reversed(probes)]
    ends = [*ax.get_xlim(), *(end for pair in bounds for end in pair if end is not None)]
    low, high = min(ends), max(ends)
    low, high = (low - 0.02, high + 0.02) if linear else (low / 1.15, high * 1.15)
    for y, (start, end) in enumerate(bounds):
        if (start, end) != (None, None):
            limits = low if start is None else start, high if end is None else end
            ax.fill_betweenx([y - 0.25, y + 0.25], *limits, color="#009E73", alpha=0.15, lw=0)
    ax.set_xlim(low, high)
    if not linear:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
        ticks = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
        ticks = ticks[:: len(ticks) // 6 + 1] if len(ticks) > 1 else [low * 1.15, high / 1.15]
        ax.set_xticks(ticks, map(summary.format_number, ticks))
        ax.set_xticks([], minor=True)
    ax.spines["left"].set_visible(False)
    return _to_svg(figure)
