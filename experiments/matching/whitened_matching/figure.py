"""Gaps by checkpoints and by covariates, unusual pools, and what is judged."""

import numpy as np

from experiments.matching import rows
from experiments.matching.rows import upright
from experiments.matching.whitened_matching import claims
from experiments.matching.whitened_matching.claims import PLAIN, SCALED, WHITE, ratio
from experiments.matching.whitened_matching.config import CASES, RIVALS, directions
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

GAP = "gap / size of predictions"
HOLLOW = style.METHOD["matching"] | {"mfc": "white"}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.9, 4.0), ((1, 1), (2, 3)))
    plot_checkpoints(axes[0], dataset)
    plot_covariates(axes[1], dataset)
    unusual_pools(axes[2], dataset)
    plot_judged(axes[3], dataset)
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
    ax.set_title(f"{config.depth} layers of descent")


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
    ax.set_title(f"{config.n} of {config.m} demonstrations")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=4, handlelength=1)


def unusual_pools(ax, dataset):
    """Filled: errors; hollow: gaps."""
    config, span, places = results.config_of(dataset), (0.1, 10.0), np.arange(len(CASES))
    deepest = max(config.depths)
    for i, values in enumerate((dataset.case_error, dataset.case_gap)):
        ratios = ratio(values.sel(depth=deepest), PLAIN).transpose("run", "case").values
        look = style.METHOD[WHITE] | ({"mfc": "white"} if i else {})
        y = places + 0.3 * (i - 0.5)
        rows.medians(ax, y, ratios, span, label=("error", "gap")[i], **look)
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=(0.1, 1, 10))
    ax.set_yticks(places, list(CASES))
    ax.set(xlim=span, ylim=(len(places) - 0.5, -0.5), xlabel="whitened / plain")
    ax.set_title(f"{deepest} layers, other pools", loc="right")
    ax.legend(loc="lower right")


def plot_judged(ax, dataset):
    style.log_axes(ax, x=True, ticks=(0.05, 0.2, 1, 5))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.04, 12.0))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    gap = dataset.used_gap.sel(depth=config.depth, used=config.d + 1).median("run")
    plain, white = (f"{float(gap.sel(matched=rule)):.2g}" for rule in (PLAIN, WHITE))
    names = ("used_gap", "d_gap", "n_gap", "case_gap", "case_error")
    missing = sum(style.missing(dataset[name]) for name in names)
    return (
        f"Matched in whitened gradients, {config.n} demonstrations answer like their pool up to "
        f"{white}; matched in plain gradients, up to {plain}. "
        'The bound is a theorem (docs/theory, "The whitened gap bound"). '
        f"In b directions outnumber demonstrations beyond the dashes, and in c each pool is unlike "
        f"the usual one. Points are medians of {config.runs} runs with their middle 80 %. "
        f"{missing} numbers were not finite."
    )
