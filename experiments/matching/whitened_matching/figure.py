"""Gaps by checkpoints, and by covariates beside rivals."""

import numpy as np

from experiments.matching.rows import upright
from experiments.matching.whitened_matching.claims import PLAIN, SCALED, WHITE
from experiments.matching.whitened_matching.config import RIVALS, directions
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

GAP = "gap / size of predictions"
HOLLOW = style.METHOD["matching"] | {"mfc": "white"}


def plot(dataset):
    figure, axes = style.figure(6.75, 3.2, (1, 2))
    plot_checkpoints(axes[0], dataset)
    plot_covariates(axes[1], dataset)
    return figure


def plot_checkpoints(ax, dataset):
    config = results.config_of(dataset)
    gap, used = dataset.used_gap.sel(depth=config.depth), dataset.used.values
    random = dataset.case_gap.sel(case="usual", few_rule="random", depth=config.depth)
    style.log_axes(ax, y=True)
    for i, rule in enumerate((PLAIN, WHITE)):
        runs = gap.sel(matched=rule).transpose("run", "used").values
        upright(ax, used + 0.1 * (2 * i - 1), runs, 1e-9, ls="-", lw=0.8, **style.METHOD[rule])
        text, at = ("whitened", -2) if i else ("plain", 2)
        direct_label(ax, used[-1], np.median(runs[:, -1]), text, style.COLOURS[0], (6, at))
    middle = float(random.median("run"))
    ax.axhline(middle, color=style.METHOD["random"]["color"], lw=1.2)
    direct_label(ax, used[-1], middle, "random", style.METHOD["random"]["color"], (6, 2))
    ax.axvline(config.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(used)
    ax.set(xlabel="checkpoints (dashes: d + 1)", ylabel=GAP, xlim=(0.5, used[-1] + 1.8))
    ax.set_title("Whitened, d + 1 are enough")


def plot_covariates(ax, dataset):
    config, dims = results.config_of(dataset), dataset.d.values
    gap = dataset.d_gap.sel(depth=config.depth)
    style.log_axes(ax, x=True, y=True, ticks=dims)
    for i, rule in enumerate((WHITE, PLAIN, SCALED, *RIVALS)):
        look = HOLLOW if rule == SCALED else style.METHOD[rule]
        runs = gap.sel(rule=rule).transpose("run", "d").values
        label = {PLAIN: "plain", WHITE: "whitened", SCALED: "scaled"}.get(rule, rule)
        upright(ax, dims * 1.04 ** (i - 3), runs, 1e-9, ls="-", lw=0.8, label=label, **look)
    edge = np.interp(config.n, [directions(d) for d in range(40)], range(40))
    if edge < dims[-1]:
        ax.axvline(edge, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="covariates d (dashes: n directions)", ylabel=GAP)
    ax.set_title("Whitened is nearest at every d")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=4, handlelength=1)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    gap = dataset.used_gap.sel(depth=config.depth, used=config.d + 1).median("run")
    plain, white = (f"{float(gap.sel(matched=rule)):.2g}" for rule in (PLAIN, WHITE))
    return (
        f"Matched in whitened gradients, {config.n} demonstrations answer like their pool up to "
        f"{white}; matched in plain gradients, up to {plain}. "
        'The bound is a theorem (docs/theory, "The whitened gap bound"). '
        f"The descent has {config.depth} layers, and {config.n} of {config.m} are chosen. In b "
        "directions outnumber demonstrations beyond the dashes. "
        f"Points are medians of {config.runs} runs with their middle 80 %. "
    )
