"""The explorer's figure: five panels, laid out once and filled again at every move.

Matplotlib spends most of a drawing on ticks and labels. They stand still here, in a frame that is
kept as pixels until a limit changes; logarithmic limits are whole decades.
"""

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from explorer.views import HEADS, LAYERS, WIDTH, Controls, Views
from lsa_lab.analyses.clipping import kept_rank
from lsa_lab.harness.draw import marks, style
from lsa_lab.harness.draw.methods import GREY, METHOD

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DOTS = 112  # an inch: shown unscaled beside the sliders on a screen of 1280 dots
_FAR = 1e-6, 1e12  # decades end here, and what is beyond stands at the edge with its number
_WORDS = (  # title, label of x and of y
    ("flow from each demonstration", "layer", "|∂ŷ/∂e|, dark: most in layer 1"),
    ("", "layer", "risk"),
    ("spectrum (pale: cut)", "index", "singular value"),
    ("risk by kept rank", "kept rank", ""),
    ("rise without a head", "head", "layer"),
)
_PLACES = ((1, LAYERS), (0, LAYERS), (1, WIDTH), (1, WIDTH), (1, HEADS))  # first and last of x
_RISES = (-10, -1, 0, 1, 10)
_MODEL: dict[str, Any] = METHOD["softmax"]
_RIDGE: dict[str, Any] = METHOD["ridge"] | {"marker": ""}


class Picture:
    """The panels, everything in its place; ``png`` fills them."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure, self._axes = style.stacked(6.75, (2.5, 2.2), ((1, 1), (1, 1, 1.15)))
        figure.set_dpi(_DOTS)
        with style.context():
            for ax, (title, x, y), (first, last) in zip(self._axes, _WORDS, _PLACES, strict=True):
                ax.set_title(title, y=1.0)
                ax.set(xlabel=x, ylabel=y)
                ax.set(xlim=(first - 0.5, last + 0.5), xticks=range(first, last + 1))
            for ax in (self._axes[0], self._axes[1], self._axes[3]):
                style.log_axes(ax, y=True)
                ax.set_ylim(0.01, 1)
                ax.minorticks_off()
            _legend(self._axes[1])
            _shades(figure, self._axes[4])
            figure.draw_without_rendering()
        figure.set_layout_engine("none")
        self._canvas = FigureCanvasAgg(figure)
        self._frame: Any = None  # the pixels of everything but the data, for these limits:
        self._limits: list[tuple[float, float]] = []

    def png(self, controls: Controls, views: Views) -> bytes:
        """The picture of these views."""
        from matplotlib.image import imsave

        with style.context():
            self._fill(controls, views)
            data = [(ax, each) for ax in self._axes for each in _data(ax)]
            limits = [ax.get_ylim() for ax in self._axes]
            if limits != self._limits:
                for _, artist in data:
                    artist.set_animated(True)  # left out of the frame
                self._canvas.draw()
                self._frame = self._canvas.copy_from_bbox(self._canvas.figure.bbox)
                self._limits = limits
            self._canvas.restore_region(self._frame)
            for ax, artist in data:
                ax.draw_artist(artist)
        file = io.BytesIO()
        imsave(file, np.asarray(self._canvas.buffer_rgba()), pil_kwargs={"compress_level": 1})
        return file.getvalue()

    def _fill(self, controls: Controls, views: Views) -> None:
        for ax in self._axes:
            for artist in _data(ax):
                if artist not in ax.images:
                    artist.remove()
        flow, risk, spectrum, clipped, importance = self._axes
        depth, rank = int(controls.depth), int(kept_rank(WIDTH, float(controls.rate)))
        _flow(flow, np.asarray(views.flow)[:depth, : int(controls.shots)])
        _risk(risk, depth, views)
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
    order = np.argsort(flow[0])
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
    marks.off_scale(ax, layers, risks, _MODEL["color"], ".0e")
    marks.off_scale(ax, layers, descent, METHOD["descent"]["color"], ".0e")


def _spectrum(ax: "Axes", rank: int, values: np.ndarray) -> None:
    places = 1 + np.arange(WIDTH)
    ax.bar(places, values, color=np.where(places <= rank, GREY, "#d9d9d9"))
    ax.set_ylim(0, max(1, np.ceil(values.max())))


def _clipped(ax: "Axes", rank: int, views: Views) -> None:
    ranks, risks = 1 + np.arange(WIDTH), np.asarray(views.clipped)
    ax.axhline(float(views.ridge), **_RIDGE)
    ax.plot(ranks, risks, mfc="white", **_MODEL)
    ax.plot(rank, risks[rank - 1], **_MODEL)
    marks.off_scale(ax, rank, risks[rank - 1], _MODEL["color"], ".0e")


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
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)


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
    """Whole decades around the values, so that the axis holds still while a slider moves a bit."""
    every = np.asarray(values, float)
    every = np.clip(every[np.isfinite(every) & (every > 0)], *_FAR)
    low, high = (every.min(), every.max()) if every.size else (0.1, 1)
    ax.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.floor(np.log10(high) + 1))


def _hold_labels(ax: "Axes") -> None:
    """Leave the labels where the layout has put them: to search their place again takes time."""
    for axis in (ax.xaxis, ax.yaxis):
        label = axis.label
        place = label.get_transform().transform(label.get_position())
        axis.set_label_coords(*ax.transAxes.inverted().transform(place))
