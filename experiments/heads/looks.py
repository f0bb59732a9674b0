"""One look for rules in all figures on heads."""

from lsa_lab.harness.draw.style import METHOD


def levels(ax, risks: dict[str, float]) -> None:
    """Dotted lines across the panel at the risks of rules, named at the left."""
    for name, risk in risks.items():
        color = METHOD.get(name, METHOD["least squares"])["color"]
        ax.axhline(risk, color=color, lw=0.8, ls=":", zorder=0)
        look = dict(fontsize=7, color=color, va="bottom", ha="left")
        ax.text(0.01, risk, name, transform=ax.get_yaxis_transform(), **look)
