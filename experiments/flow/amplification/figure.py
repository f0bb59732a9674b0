"""The ratio of two flows from layer to layer, and the shares of pairs that grow or turn."""

import numpy as np

from experiments.flow.amplification.claims import changes, runs_of
from experiments.flow.amplification.panels import panels, shares
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import median_interval


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(11.0, 7.0, (2, 3))
    for ax, (title, curves) in zip(axes, panels(config).items(), strict=False):
        _draw_changes(ax, dataset, curves, config.clear)
        ax.set_title(title)
    _draw_shares(axes[-1], dataset, shares(config), config.generic)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    ends, lost = _directions(dataset, config)
    dropped = int(dataset.dropped.sel(mode="alone", reading="token").sum())
    total = config.runs * config.pairs * dataset.sizes["case"]
    left = dataset.error.sel(stage="trained").median("trained_run").values
    errors = ", ".join(f"{error:.1%}" for error in left)
    diverged = int(dataset.status.str.startswith("diverged").sum())
    return (
        "Clearly in linear stacks alone, if weights are large or feedback is positive, and only "
        "where each demonstration is alone in its prompt. "
        f"A curve rises above the grey band in {'; '.join(ends['rises']) or 'no panel'}, and falls "
        f"below it in {'; '.join(ends['falls']) or 'no panel'}; the others are not clear of it. "
        "Weights that blow tokens up amplify demonstrations that are alone with them; in one "
        "prompt both grow together (b). A median falls, too, where layers only turn the order "
        f"(f; dashed: Theorem 1). Median of {config.runs} runs, in e {config.trained_runs}, "
        f"and the middle 80 % of them; left out: {dropped} of {total} pairs in a, c and d, which "
        f"overflow, {diverged} diverged trained runs, {lost} medians. d = {config.d}. Flows to "
        "the query's token; in d, of descent, and in e to the prediction, whose median error "
        f"training brings to {errors} of that of 0."
    )


def _directions(dataset, config):
    """As {"rises": ["a (gain 1, gain 3)"]}, by the interval of the median over runs at the last
    layer, and how many medians are not finite."""
    ends, lost = {"rises": [], "falls": [], "neither": []}, 0
    for letter, curves in zip("abcde", panels(config).values(), strict=True):
        labels = {end: [] for end in ends}
        for label, case, which, *_ in curves:
            change = changes(dataset, case, **which)
            lost += style.missing(change)
            low, high = median_interval(change[:, -1])
            rises, falls = low >= config.clear, high <= -config.clear
            end = "rises" if rises else "falls" if falls else "neither"
            labels[end].append(label.replace(", ", " "))
        for end, of_end in labels.items():
            ends[end] += [f"{letter} ({', '.join(of_end)})"] * bool(of_end)
    return ends, lost


def _draw_changes(ax, dataset, curves, clear):
    for i, (label, case, which, color, marker) in enumerate(curves):
        change = changes(dataset, case, **which)
        layers = np.arange(change.shape[1]) + 1
        x = layers + 0.09 * (i - (len(curves) - 1) / 2)
        style.band(ax, x, change, label, color, marker)
        ax.plot(x, np.nanmedian(change, axis=0), color=color, lw=0.8, alpha=0.5)
    ax.axhspan(-clear, clear, color="grey", alpha=0.2, lw=0)
    ax.set_yscale("symlog", linthresh=0.3)
    ax.set(ylim=(-4, 2e3), yticks=[-1, -0.1, 0.1, 1, 10, 100])
    ax.set_yticklabels(["−1", "−0.1", "0.1", "1", "10", "100"])
    ax.set(xlabel="layers", xticks=layers, ylabel="change of median log ratio")
    columns = 2 if len(curves) > 5 else 1
    ax.legend(loc="upper left", ncols=columns, columnspacing=0.5, handletextpad=0.2)


def _draw_shares(ax, dataset, rows, generic):
    for name, label, color, marker in (
        ("growth", "grows in every layer", style.COLOURS[0], "o"),
        ("flips", "order reversed", style.COLOURS[1], "s"),
    ):
        values = [np.median(runs_of(dataset, name, case, **which)) for _, case, which in rows]
        ax.plot(values, -np.arange(len(rows)), marker, color=color, label=label)
    ax.axvline(generic, color="grey", lw=0.8, ls="--")
    ax.set_yticks(-np.arange(len(rows)), [label for label, *_ in rows], fontsize=6)
    ax.set(title="share of the pairs", xlim=(-0.03, 1.03))
    ax.legend(loc="center right", bbox_to_anchor=(0.94, 0.12))
