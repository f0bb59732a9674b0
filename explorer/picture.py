"""The explorer's figure: six panels, laid out once and filled again at every move.

Logarithmic limits are whole decades, so that axes hold still while a slider moves a bit.
"""

import functools
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from explorer.views import HEADS, HORIZON, LAYERS, WIDTH, Controls, D, Views
from lsa_lab.analyses.clipping import kept_rank
from lsa_lab.lab import plotting
from lsa_lab.lab.plotting import BLACK, BLUE, GREEN, GREY, METHOD, VERMILION
from lsa_lab.theory import learning_curves

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAR = 1e-6, 1e12  # decades end here, and what is beyond stands at the edge with its number
_WORDS = (  # title, label of x and of y
    ("flow by demonstration", "layer", "|∂ŷ/∂e|, shaded by layer 1"),
    ("risk by layer", "layer", "risk"),
    ("learning curves", "demonstrations", "excess risk"),
    ("spectrum (pale: cut)", "index", "singular value"),
    ("risk by kept rank", "kept rank", ""),
    ("rise without a head", "head", "layer"),
)
_PLACES = (
    (1, LAYERS),
    (0, LAYERS),
    (0, HORIZON),
    (1, WIDTH),
    (1, WIDTH),
    (1, HEADS),
)  # first and last of x
_RISES = (-10, -1, 0, 1, 10)
_MODEL: dict[str, Any] = METHOD["softmax"]
_RIDGE: dict[str, Any] = METHOD["ridge"] | {"marker": ""}


class Picture:
    """The panels, everything in its place; ``svg`` fills them."""

    def __init__(self) -> None:
        self._figure, self._axes = plotting.figure(8.5, 4.8, (2, 3))
        with plotting.context():
            for ax, (title, x, y), (first, last) in zip(self._axes, _WORDS, _PLACES, strict=True):
                ax.set_title(title, y=1.0)
                ax.set(xlabel=x, ylabel=y)
                ticks = range(first, last + 1, 1 if last < HORIZON else 10)
                ax.set(xlim=(first - 0.5, last + 0.5), xticks=ticks)
            for ax in self._axes[:3] + self._axes[4:5]:
                plotting.log_axes(ax, y=True)
                ax.set_ylim(0.01, 1)
                ax.minorticks_off()
            _legend(self._axes[1])
            _shades(self._figure, self._axes[5])
            self._figure.draw_without_rendering()
        self._figure.set_layout_engine("none")

    def svg(self, controls: Controls, views: Views) -> bytes:
        """The picture of these views."""
        import matplotlib

        file = io.BytesIO()
        with plotting.context(), matplotlib.rc_context({"svg.hashsalt": "lsa-lab"}):
            self._fill(controls, views)
            self._figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    def _fill(self, controls: Controls, views: Views) -> None:
        for ax in self._axes:
            for artist in _data(ax):
                if artist not in ax.images:
                    artist.remove()
        flow, risk, learning, spectrum, clipped, importance = self._axes
        depth, rank = int(controls.depth), int(kept_rank(WIDTH, float(controls.rate)))
        _flow(flow, np.asarray(views.flow)[:depth, : int(controls.shots)])
        _risk(risk, depth, views)
        _learning(learning, controls, np.asarray(views.curves))
        _spectrum(spectrum, rank, np.asarray(views.spectrum))
        clipped.set_ylim(risk.get_ylim())
        _clipped(clipped, rank, views)
        _importance(importance, controls, views)


def _data(ax: "Axes") -> "list[Artist]":
    """What shows data, from the back to the front."""
    return [*ax.images, *ax.patches, *ax.lines, *ax.texts]


def _flow(ax: "Axes", flow: np.ndarray) -> None:  # [layers, demonstrations]
    from matplotlib import colormaps

    flow = np.where(np.isfinite(flow), flow, np.nan)
    order = np.argsort(flow[0], kind="stable")
    shades = colormaps["viridis_r"](np.linspace(0.15, 1, len(order)))
    for column, shade in zip(flow.T[order], shades, strict=True):
        ax.plot(1 + np.arange(len(flow)), column, color=shade, marker="o", ms=2.5, lw=1)
    _decades(ax, flow)


def _risk(ax: "Axes", depth: int, views: Views) -> None:
    layers, ridge = np.arange(depth + 1), float(views.ridge)
    risks, descent = (np.asarray(curve)[: depth + 1] for curve in (views.risks, views.descent))
    _decades(ax, [*risks, *descent, *np.asarray(views.clipped), ridge])
    ax.axhline(ridge, **_RIDGE)
    ax.plot(layers, risks, **_MODEL)
    ax.plot(layers, descent, ls="--", **METHOD["descent"])
    _mark_beyond(ax, layers, risks, _MODEL["color"])
    _mark_beyond(ax, layers, descent, METHOD["descent"]["color"])


def _learning(ax: "Axes", controls: Controls, curves: np.ndarray) -> None:
    """Closed curves of the layers of today, and the Bayes rule's."""
    places, bayes = np.arange(HORIZON + 1), _bayes(round(float(controls.noise_std), 6))
    names = ("additive", "delta, best steps", f"delta, β = {float(controls.step):.2g}", "Bayes")
    colors = (BLUE, GREEN, VERMILION, BLACK)
    for name, color, curve in zip(names, colors, [*curves, bayes], strict=True):
        ax.plot(places, curve, color=color, lw=1, label=name)
    _decades(ax, np.concatenate([curves.ravel(), bayes]))
    ax.legend(loc="best", fontsize=6)


@functools.cache
def _bayes(noise_std: float) -> np.ndarray:
    return np.asarray(learning_curves.ridge(HORIZON, D, noise_std**2))


def _spectrum(ax: "Axes", rank: int, values: np.ndarray) -> None:
    places = 1 + np.arange(WIDTH)
    ax.bar(places, values, color=np.where(places <= rank, GREY, "#d9d9d9"))
    ax.set_ylim(0, max(1, np.ceil(values.max())))


def _clipped(ax: "Axes", rank: int, views: Views) -> None:
    ranks, risks = 1 + np.arange(WIDTH), np.asarray(views.clipped)
    ax.axhline(float(views.ridge), **_RIDGE)
    ax.plot(ranks, risks, mfc="white", **_MODEL)
    ax.plot(rank, risks[rank - 1], **_MODEL)
    _mark_beyond(ax, rank, risks[rank - 1], _MODEL["color"])


def _mark_beyond(ax: "Axes", x: ArrayLike, y: ArrayLike, color: str) -> None:
    """Mark points beyond the limits of y at the edge, with their numbers."""
    low, high = ax.get_ylim()
    for place, value in zip(np.atleast_1d(x), np.atleast_1d(y), strict=True):
        if not low <= value <= high:
            edge, marker, inwards = (low, "v", 1) if value < low else (high, "^", -1)
            look: dict[str, Any] = {"marker": marker, "mfc": "white", "clip_on": False}
            ax.plot(place, edge, ls="none", ms=5, color=color, **look)
            words: dict[str, Any] = {"ha": "center", "va": "top" if inwards < 0 else "bottom"}
            words |= {"textcoords": "offset points", "fontsize": 7, "color": color}
            ax.annotate(f"{value:.0e}", (place, edge), (0, 4 * inwards), **words)


def _importance(ax: "Axes", controls: Controls, views: Views) -> None:
    (image,) = ax.images
    image.set_data(np.asarray(views.importance) / float(views.risks[-1]))
    gates = np.asarray(controls.gates)[None] * (np.arange(LAYERS) < int(controls.depth))[:, None]
    layers, heads = np.nonzero(gates == 0)
    ax.plot(1 + heads, 1 + layers, "x", color=GREY)


def _legend(ax: "Axes") -> None:
    looks = {"model": _MODEL, "descent": METHOD["descent"] | {"ls": "--"}, "ridge": _RIDGE}
    for name, look in looks.items():
        ax.plot([], [], label=name, **look)
    ax.legend(loc="upper right", fontsize=6)


def _shades(picture: "Figure", ax: "Axes") -> None:
    """An empty map of the heads; colours are linear up to a tenth of the risk, then by decades."""
    from matplotlib.colors import SymLogNorm

    image = ax.imshow(
        np.zeros((LAYERS, HEADS)),
        cmap="RdBu_r",
        norm=SymLogNorm(0.1, vmin=_RISES[0], vmax=_RISES[-1]),
        aspect="auto",
        extent=(0.5, HEADS + 0.5, LAYERS + 0.5, 0.5),
    )
    ax.set_yticks(range(1, LAYERS + 1))
    bar = picture.colorbar(image, ax=ax, extend="both", label="in units of the risk")
    bar.set_ticks(_RISES, labels=[str(rise).replace("-", "−") for rise in _RISES])
    bar.minorticks_off()


def _decades(ax: "Axes", values: ArrayLike) -> None:
    """Whole decades around the values."""
    every = np.asarray(values, float)
    every = np.clip(every[np.isfinite(every) & (every > 0)], *_FAR)
    low, high = (every.min(), every.max()) if every.size else (0.1, 1)
    ax.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.floor(np.log10(high) + 1))


def sentence(controls: Controls, views: Views) -> str:
    """The risk beside ridge's and descent's, and how unequal the two largest flows are."""
    depth, risk = int(controls.depth), float(views.risks[-1])
    layers = "1 layer" if depth == 1 else f"{depth} layers"
    steps = "1 step" if depth == 1 else f"{depth} steps"
    if not np.isfinite(risk):
        return f"After {layers} the risk is no longer a number: the weights are too large."
    risks = (
        f"After {layers} the risk is {_times(risk / float(views.ridge))} ridge's and "
        f"{_times(risk / float(views.descent[-1]))} that of {steps} of descent"
    )
    first, last = float(views.ratio[0]), float(views.ratio[depth - 1])
    if int(controls.shots) == 1 or not np.isfinite([first, last]).all():
        return f"{risks}."
    return (
        f"{risks}. Of the two demonstrations with the largest flow after layer 1, the first has "
        f"{_times(first)} the flow of the second there, and {_times(last)} after layer {depth}."
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if 100 <= ratio < 1e6 else f"{ratio:.2g} times"
