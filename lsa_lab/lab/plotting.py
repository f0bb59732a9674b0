"""The style of all figures: a line is theory, points with bars are runs.

Figures are made without pyplot: no window and no global state. One colour is a family of methods,
one marker a member of it, in all figures. The colours are Okabe and Ito's, which are told apart
with any kind of colour vision; yellow is too pale for a line on white.
"""

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.lab.catalogue import UsageError
from lsa_lab.lab.claims import STATISTICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, GREY = "#000000", "#767676"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = COLOURS
_LOOKS = {
    "linear": (BLUE, "o"),
    "linear, causal": (BLUE, "d"),
    "softmax": (VERMILION, "s"),
    "softmax, causal": (VERMILION, "d"),
    "softmax, norm": (VERMILION, "D"),
    "softmax, norm, MLP": (VERMILION, "P"),
    "descent": (GREEN, "^"),
    "GD++": (PURPLE, "D"),
    "preconditioned descent": (ORANGE, "v"),
    "preprocessed descent": (SKY, "P"),
    "ridge": (BLACK, None),
    "Lasso": (ORANGE, ">"),
    "sparse Bayes": (PURPLE, "p"),
}
METHOD: dict[str, dict[str, Any]] = {
    name: {"color": color, "marker": marker} for name, (color, marker) in _LOOKS.items()
}
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', [" + ", ".join(f"'{c}'" for c in COLOURS) + "])",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # TrueType: text in the PDF stays text
}


@contextlib.contextmanager
def context() -> Iterator[None]:
    """Apply the settings of all figures, whatever the user's are."""
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def use_in_notebook() -> None:
    """Apply the settings to this process; in a notebook, a cell that ends in a figure shows it."""
    import matplotlib.style

    matplotlib.style.use(["default", _SETTINGS])
    with contextlib.suppress(ImportError):
        from IPython.core.getipython import get_ipython
        from IPython.core.pylabtools import select_figure_formats

        if (shell := get_ipython()) is not None:
            select_figure_formats(shell, "retina", dpi=240)


def figure(
    width: float, height: float, panels: tuple[int, int] = (1, 1), **grid: Any
) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure, in inches, and its rows x columns axes, lettered row by row."""
    from matplotlib.figure import Figure

    with context():
        picture = Figure(figsize=(width, height), layout="constrained")
        axes = list(picture.subplots(*panels, squeeze=False, **grid).flat)
        for ax, letter in zip(axes, ascii_lowercase, strict=False):
            if len(axes) > 1:
                ax.set_title(letter, loc="left", fontweight="bold")
    return picture, axes


def looks(names: Iterable[str], markers: str = "osD^vP", colours: Sequence = COLOURS) -> dict:
    """Return the colour and the marker of each name, for ``series``."""
    pairs = zip(colours, markers, strict=False)
    return {name: {"color": c, "marker": m} for name, (c, m) in zip(names, pairs, strict=False)}


def line(
    ax: "Axes",
    x: ArrayLike,
    y: ArrayLike,
    label: str | None = None,
    color: str = BLACK,
    style: str = "-",
) -> None:
    """Draw a closed form as a line; values that are not finite leave a gap."""
    ax.plot(np.asarray(x), np.asarray(y, float), style, color=color, label=label)


def mean_points(
    ax: "Axes",
    x: ArrayLike,
    samples: ArrayLike,
    label: str | None = None,
    statistic: str = "mean",
    rows: bool = False,
    **look: Any,
) -> None:
    """Draw the mean of the runs [R, len(x)] as points with intervals as bars.

    ``statistic`` may be that of a claim: "mean", "median" or "ratio", the geometric mean. With
    ``rows`` the samples are horizontal, at heights x.
    """
    if "run" in getattr(samples, "dims", ()):
        samples = samples.transpose("run", ...)  # type: ignore[union-attr]  # of xarray
    runs, (centre, interval) = np.asarray(samples, float), STATISTICS[statistic]
    if runs.ndim != 2 or runs.shape[1] != np.size(x):
        raise ValueError(f"samples of shape {runs.shape}: expected runs first, [R, {np.size(x)}]")
    ends = np.transpose([interval(column) for column in runs.T])
    middle = np.array([centre(column) for column in runs.T])
    bars = np.abs(ends - middle)
    bars = np.where(np.isfinite(bars), bars, 0.0)  # too few runs to know an interval
    marks: dict[str, Any] = {"xerr" if rows else "yerr": bars, "elinewidth": 0.8, "label": label}
    marks |= {"ls": "none"} if rows else {}
    ax.errorbar(*((middle, np.asarray(x)) if rows else (np.asarray(x), middle)), **marks | look)


def series(
    ax: "Axes",
    x: ArrayLike,
    samples: Mapping[str, ArrayLike],
    looks: Mapping[str, dict[str, Any]],
    statistic: str = "mean",
    shift: float = 0.0,
    **look: Any,
) -> None:
    """Draw ``mean_points`` of the samples [R, len(x)] of each name, ``shift`` beside each other."""
    for i, (name, values) in enumerate(samples.items()):
        places = np.asarray(x) + shift * (i - (len(samples) - 1) / 2)
        marks: dict[str, Any] = {"label": name} | look | looks[name]
        mean_points(ax, places, values, statistic=statistic, **marks)


def log_axes(
    ax: "Axes",
    x: bool = False,
    y: bool = False,
    ticks: Sequence | None = None,
    y_ticks: Sequence | None = None,
) -> None:
    """Make axes logarithmic; ``ticks`` of x get a label, and those ``y_ticks`` that y has."""
    from matplotlib.ticker import NullFormatter, NullLocator

    if x:
        ax.set_xscale("log")
        if ticks is not None:
            ax.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
            ax.xaxis.set_minor_locator(NullLocator())
    if y:
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
        if y_ticks is not None:
            low, high = ax.get_ylim()
            kept = [tick for tick in y_ticks if low <= tick <= high]
            ax.set_yticks(kept, [f"{tick:g}" for tick in kept])
            ax.yaxis.set_minor_locator(NullLocator())


def encode(picture: "Figure", kind: str) -> bytes:
    """Return the file of a figure, "pdf" or "png", without a date."""
    content = io.BytesIO()
    metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    with context():
        picture.savefig(content, format=kind, metadata=metadata)
    return content.getvalue()


def keep_panel(picture: "Figure", letter: str) -> None:
    """Keep the panel with this letter alone; raise UsageError if there is none."""
    letters = {ax.get_title(loc="left"): ax for ax in picture.axes}
    if letter not in letters:
        raise UsageError(f"no panel {letter!r}: the figure has {', '.join(filter(None, letters))}")
    for ax in picture.axes:
        if ax is not letters[letter]:
            ax.remove()
    letters[letter].set_title("", loc="left")
    grid = letters[letter].get_gridspec()
    if grid is not None:
        width, height = picture.get_size_inches()
        picture.set_size_inches(width / grid.ncols, height / grid.nrows)
        letters[letter].set_subplotspec(picture.add_gridspec(1, 1)[0])
