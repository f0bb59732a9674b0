"""One look for a trained model and for a rule in all figures on heads."""

from typing import Any

from lsa_lab.harness.draw.style import METHOD

_METHODS = {"narrow keys": "linear, narrow keys", "softmax": "softmax"}


def look_of(name: str) -> dict[str, Any]:
    """The colour and marker of a model, by its name: linear attention where it names no other."""
    return METHOD[_METHODS.get(name, "linear")]


def levels(ax, risks: dict[str, float]) -> None:
    """Dotted lines across the panel at the risks of rules, named at the left."""
    for name, risk in risks.items():
        color = METHOD.get(name, METHOD["least squares"])["color"]
        ax.axhline(risk, color=color, lw=0.8, ls=":", zorder=0)
        look = dict(fontsize=7, color=color, va="bottom", ha="left")
        ax.text(0.01, risk, name, transform=ax.get_yaxis_transform(), **look)
