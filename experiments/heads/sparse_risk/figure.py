"""Which rules use sparsity, and how preprocessed descent stands to the Lasso."""

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, SPARSE_BAYES
from experiments.heads.sparse_risk import claims
from experiments.heads.sparse_risk.claims import bound_ratios, lasso_ratios
from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, SQUARES
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

# Rules beside ridge, from the worst to the best.
BESIDE = (SQUARES, DESCENT, EQUIVARIANT, PREPROCESSED, LASSO, SPARSE_BAYES)


def plot(dataset):
    return style.panels(dataset, 2.8, kinds_of_weights, duel)


def look(rule: str) -> dict:
    return style.METHOD.get(rule, {"color": "grey", "marker": None})


def kinds_of_weights(ax, dataset):
    """A row for each rule: filled, open and pale points for the kinds of weights."""
    faces = {}, {"mfc": "white"}, {"alpha": 0.35}
    for row, rule in enumerate(BESIDE):
        runs = bound_ratios(dataset, "by_law").sel(rule=rule).transpose("run", "law")
        for kind, values, face in zip(runs.law.values, runs.values.T, faces, strict=True):
            ends = np.ravel(style.mean_ends(values[:, None]))
            ax.plot(ends, [row, row], "-", color=look(rule)["color"])
            point = look(rule) | {"marker": look(rule)["marker"] or "|"}
            ax.plot(values.mean(), row, **point, ls="none", ms=5, **face)
            if rule == SPARSE_BAYES:
                direct_label(ax, values.mean(), row, kind, look(rule)["color"], (3, -5))
    ax.axvline(1, color=style.BLACK, lw=1.2)
    ax.set_yticks(range(len(BESIDE)), BESIDE, fontsize=7)
    ax.set(xlabel="excess risk / ridge's", xlim=(0, 1.7), ylim=(len(BESIDE) - 0.2, -0.6))
    ax.set_title("Sparsity helps coordinate rules")
    direct_label(ax, 1, -0.4, "ridge", style.BLACK, (3, 0))


def duel(ax, dataset):
    """Preprocessed descent over the Lasso, against n / d, and where they count as comparable."""
    config, color = results.config_of(dataset).duel, look(PREPROCESSED)["color"]
    ax.axhspan(1 / claims.FACTOR, claims.FACTOR, color="grey", alpha=0.2, lw=0)
    ax.axhline(1, color=style.BLACK, lw=1.2)
    for width, dashes in zip(config.widths, ("-", "--"), strict=False):
        for law, face in (("gaussian", color), ("flat", "white")):
            runs = lasso_ratios(dataset, width).sel(law=law).transpose("run", "per_d").values
            name, means = f"{law}, d = {width}", np.exp(np.log(runs).mean(0))
            ax.plot(config.per_d, means, dashes, color=color, marker="o", mfc=face, label=name)
            ends = np.exp(np.transpose([style.mean_ends(np.log(runs))])[..., 0])
            ax.vlines(config.per_d, ends[:, 0], ends[:, 1], color=color, lw=1)
    style.log_axes(ax, x=True, ticks=config.per_d)
    style.log_axes(ax, y=True)
    ax.set_yticks((0.25, 0.5, 1, 1.5), ("0.25", "0.5", "1", "1.5"))
    ax.minorticks_off()
    ax.set(xlabel="n / d", ylabel="risk / the Lasso's")
    ax.set_title("Preprocessing wins at large n")
    ax.legend(loc="lower left")


def caption(dataset) -> str:
    risks = bound_ratios(dataset, "by_law").sel(law="Gaussian").mean("run")
    gain, turned = (1 - float(risks.sel(rule=rule)) for rule in (PREPROCESSED, EQUIVARIANT))
    widths = results.config_of(dataset).duel.widths
    ratios = [np.exp(np.log(lasso_ratios(dataset, width)).mean("run")) for width in widths]
    return (
        f"On sparse Gaussian weights preprocessed descent loses {_lost(gain)} than ridge, and "
        f"the best rule that commutes with rotations {_lost(turned)}. Preprocessed descent has "
        f"{np.min(ratios):.2f} to {np.max(ratios):.2f} times the Lasso's risk. In a, points are "
        "filled for Gaussian non-zeros, open for flat ones, pale for dense weights. In b the grey "
        f"band is a factor of {claims.FACTOR:g}."
    )


def _lost(gain: float) -> str:
    return f"{abs(gain):.0%} {'less' if gain > 0 else 'more'}"
