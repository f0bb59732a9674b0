"""The figure of `amplification`, drawn from its result alone."""

import numpy as np

from experiments.flow.amplification.claims import CONSTRUCTED, changes, measured
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import median_interval

LABELS = {"linear": "linear", "softmax": "softmax", "norm": "+ norm", "MLP": "+ norm + MLP"}


def panels(settings):
    """{title: [(label, case, what to look at, colour, marker)]}"""
    kinds, (dot, square) = settings.kinds, style.MARKERS[:2]
    colour = dict(zip((*LABELS, *settings.gains), style.COLOURS * 3, strict=False))
    linear = [
        (f"{tied}gain {gain:g}", f"linear: {tied}gain {gain:g}", {}, colour[gain], mark)
        for tied, mark in (("", dot), ("tied, ", square))
        for gain in settings.gains
    ]
    return {
        "linear, random, each alone": linear,
        "linear, random, both in one prompt": [
            (label, case, {"mode": "together"}, *look) for label, case, _, *look in linear
        ],
        "softmax, random, each alone": [
            (f"{LABELS[kind]}, gain {gain:g}", f"{kind}: gain {gain:g}", {}, colour[kind], mark)
            for gain, mark in ((settings.gain, dot), (settings.gains[-1], square))
            for kind in kinds[1:]
        ],
        "linear, constructed, each alone": [
            (label, case, {"reading": reading}, color, dot)
            for (label, case, reading), color in zip(CONSTRUCTED, style.COLOURS, strict=False)
        ],
        f"trained, two of {settings.shots} in a prompt": [
            (f"{LABELS[kind]}{after}", f"{stage}: {kind}", {}, colour[kind], mark)
            for stage, after, mark in (("trained", "", dot), ("untrained", ", before", square))
            for kind in settings.trained_kinds
        ],
    }


def shares(settings):
    """The rows of the last panel, [(label, case, what to look at)]."""
    gain = f"gain {settings.gain:g}"
    skipping = [kind for kind in ("linear", "softmax") if kind in settings.kinds]
    return [
        *[(f"linear, gain {g:g}", f"linear: gain {g:g}", {}) for g in settings.gains],
        (f"linear, {gain}, in one prompt", f"linear: {gain}", {"mode": "together"}),
        *[(f"linear, {gain}, d = {d}", f"linear: d = {d}", {}) for d in settings.widths],
        *[(f"{LABELS[kind]}, {gain}", f"{kind}: {gain}", {}) for kind in settings.kinds[1:]],
        *[
            (f"{kind}, residual × {weight:g}", f"{kind}: skip {weight:g}", {})
            for kind in skipping
            for weight in settings.skips
        ],
        *[(label, case, {"reading": reading}) for label, case, reading in CONSTRUCTED],
        *[(f"trained {LABELS[kind]}", f"trained: {kind}", {}) for kind in settings.trained_kinds],
    ]


def direction(samples, clear):
    low, high = median_interval(samples)
    return "rises" if low >= clear else "falls" if high <= -clear else "neither"


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(11.0, 7.4, (2, 3))
    lost, found = 0, {"rises": [], "falls": [], "neither": []}
    for ax, letter, (title, curves) in zip(axes, "abcde", panels(settings).items(), strict=False):
        ends = {"rises": [], "falls": [], "neither": []}
        for i, (label, case, which, color, marker) in enumerate(curves):
            change = changes(dataset, case, **which)
            layers = np.arange(change.shape[1]) + 1
            x = layers + 0.09 * (i - (len(curves) - 1) / 2)
            lost += style.band(ax, x, change, label, color, marker)
            ax.plot(x, np.nanmedian(change, axis=0), color=color, lw=0.8, alpha=0.5)
            end = direction(change[:, -1], settings.clear)
            ends[end].append(label.replace(", ", " "))
        for end, labels in ends.items():
            found[end] += [f"{letter} ({', '.join(labels)})"] * bool(labels)
        ax.axhspan(-settings.clear, settings.clear, color="grey", alpha=0.2, lw=0)
        ax.set_yscale("symlog", linthresh=0.3)
        ax.set(ylim=(-4, 2e3), yticks=[-1, -0.1, 0.1, 1, 10, 100])
        ax.set_yticklabels(["−1", "−0.1", "0.1", "1", "10", "100"])
        ax.set(title=title, xlabel="layers", xticks=layers, ylabel="change of median log ratio")
        columns = 2 if len(curves) > 5 else 1
        ax.legend(loc="upper left", ncols=columns, columnspacing=0.5, handletextpad=0.2)
    ax, rows = axes[-1], shares(settings)
    for name, label, color, marker in (
        ("growth", "grows in every layer", style.COLOURS[0], "o"),
        ("flips", "order reversed", style.COLOURS[1], "s"),
    ):
        values = [np.median(measured(dataset, name, case, **which)) for _, case, which in rows]
        ax.plot(values, -np.arange(len(rows)), marker, color=color, label=label)
    ax.axvline(settings.generic, color="grey", lw=0.8, ls="--")
    ax.set_yticks(-np.arange(len(rows)), [label for label, *_ in rows], fontsize=6)
    ax.set(title="share of the pairs", xlim=(-0.03, 1.03))
    ax.legend(loc="center right", bbox_to_anchor=(0.94, 0.12))
    dropped = int(dataset.dropped.sel(mode="alone", reading="token").sum())
    total = settings.runs * settings.pairs * dataset.sizes["case"]
    left = dataset.error.sel(stage="trained").median("trained_run").values
    errors = ", ".join(f"{error:.1%}" for error in left)
    diverged = int(dataset.status.str.startswith("diverged").sum())
    style.caption(
        drawn,
        "Depth amplifies the ratio of two flows where a curve rises above the grey band: "
        f"{'; '.join(found['rises']) or 'nowhere'}. It equalises where one falls below: "
        f"{'; '.join(found['falls']) or 'nowhere'}. The others are not clear of the band. So "
        "random stacks need weights that blow tokens up, and demonstrations alone with them: in "
        "one prompt both grow together (b). A median falls, too, where layers only turn the order "
        f"(f; dashed: Theorem 1). Median of {settings.runs} runs, in e {settings.trained_runs}, "
        f"and the middle 80 % of them; left out: {dropped} of {total} pairs in a, c and d, which "
        f"overflow, {diverged} diverged trained runs, {lost} medians. d = {settings.d}. Flows to "
        "the query's token; in d, of descent, and in e to the prediction, whose median error "
        f"training brings to {errors} of that of 0.",
    )
    return drawn
