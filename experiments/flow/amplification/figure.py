"""What depth does to two flows in every stack that is judged, and layer by layer."""

import numpy as np

from experiments.flow.amplification.claims import disparity, runs_of, samples
from experiments.flow.amplification.stacks import HALVED, KINDS, LABELS, alone, stacks
from experiments.flow.amplification.statements import statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.statistics import median_interval

COLOUR = dict(zip(KINDS, style.COLOURS, strict=False))
SHARES = {"larger": "ends larger", "growth": "grows in every layer", "flips": "is turned"}
LIMITS = {"disparity": (0.15, 35.0), "lead": (-2.2, 2.2)}  # of the axes
RATIOS = (0.2, 0.5, 1, 2, 5, 10, 100)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 7.4, (2, 3))
    figure.set_layout_engine("none")  # labels of rows take room from the first column alone
    for i, ax in enumerate(axes):
        row, column = divmod(i, 3)
        left, bottom = (0.08 + 0.315 * column, 0.05) if row else (0.25 + 0.25 * column, 0.42)
        ax.set_position([left, bottom, 0.26 if row else 0.235, 0.21 if row else 0.55])
    _draw_judged(axes[:2], dataset, config)
    _draw_shares(axes[2], dataset, _rows(config), config.generic)
    for ax in axes[1:3]:
        ax.set_yticklabels([])
    for ax, (title, curves) in zip(axes[3:], _panels(config).items(), strict=True):
        _draw_layers(ax, dataset, curves, config.factor)
        ax.set(title=title, xlabel="layers")
    axes[3].set(ylabel="disparity over layer 1")
    axes[3].legend(*axes[4].get_legend_handles_labels(), loc="upper left", handletextpad=0.1)
    return figure


def _draw_judged(axes, dataset, config):
    names, numbers = [label for label, *_ in _rows(config)], samples(dataset)
    axes[0].set(title="disparity", xlabel="last layer over first", xscale="log")
    axes[1].set(title="lead", xlabel="last layer less first")
    for ax, (reading, limits) in zip(axes, LIMITS.items(), strict=True):
        judged = [each for each in statements(config) if each.id.endswith(f"_{reading}")]
        labels = {each.id: name for each, name in zip(judged, names, strict=True)}
        judged_panel.rows(ax, judged, numbers, labels, limits)
    _name(axes[0].xaxis, LIMITS["disparity"])


def _name(axis, limits):
    """Ticks of a logarithmic axis, as decimals."""
    ticks = [tick for tick in RATIOS if limits[0] <= tick <= limits[1]]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _rows(config):
    """Label, case, mode and reading of every stack that is judged; of several the first."""
    kinds = [kind for kind in ("linear", "softmax") if kind in config.kinds]
    weak = f"{config.skips[0]:g}"
    return [
        *[
            (stack.label, stack.cases[0], {"mode": stack.mode, "reading": stack.reading})
            for stack in stacks(config)
        ],
        *[(f"{kind}, residual × {weak}", f"{kind}: skip {weak}", {}) for kind in kinds],
    ]


def _panels(config):
    """{title: [(label, case, mode and reading, colour, marker, face)]}"""
    gain, shared = f"gain {config.gain:g}", {"mode": "together"}
    answer = {"reading": "prediction"}
    return {
        "random, each alone": [
            (None, f"{kind}: {tied}{gain}", {}, COLOUR[kind], marker, face)
            for tied, marker, face in (("", "o", None), ("tied, ", "s", "white"))
            for kind in config.kinds
        ],
        "random, shared": [
            (LABELS[kind], f"{kind}: {gain}", shared, COLOUR[kind], "o", None)
            for kind in config.kinds
        ],
        "trained": [
            (None, case(kind), answer | where, COLOUR[kind], marker, face)
            for case, where, marker, face in (
                (alone, {}, "o", None),
                ("trained: {}".format, shared, "s", "white"),
            )
            for kind in config.trained_kinds
        ],
    }


def _draw_shares(ax, dataset, rows, generic):
    looks = zip(style.COLOURS[3:], style.MARKERS, strict=True)
    for (name, label), (colour, marker) in zip(SHARES.items(), looks, strict=False):
        values = [np.median(runs_of(dataset, name, case, **which)) for _, case, which in rows]
        ax.plot(values, np.arange(len(rows)), marker, color=colour, label=label)
    ax.axvline(generic, color="grey", lw=0.8, ls="--")
    ax.set_yticks(range(len(rows)))
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-0.03, 1.03), title="share of pairs")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), handletextpad=0.1)


def _draw_layers(ax, dataset, curves, factor):
    """Filled and open points: what the caption says of the panel."""
    for i, (label, case, which, colour, marker, face) in enumerate(curves):
        change = disparity(dataset, case, **which)
        layers = np.arange(change.shape[1]) + 1
        x = layers + 0.07 * (i - (len(curves) - 1) / 2)
        look = dict(fmt=marker, color=colour, mfc=face or colour, capsize=1.5, elinewidth=0.8)
        style.median_points(ax, x, change, label, **look)
        ax.plot(x, np.median(change, axis=0), color=colour, lw=0.6)
    ax.axhspan(1 / factor, factor, color="grey", alpha=0.2, lw=0)
    ax.set(yscale="log", xticks=layers)
    _name(ax.yaxis, ax.get_ylim())


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), samples(dataset)
    ends = {s.id: np.median(numbers[f"{s.id}_disparity"]) for s in stacks(config)}
    softmax = max(ends[s.id] for s in stacks(config) if s.id.endswith(("_random", "_tied")))
    shared = " and ".join(
        f"{ends[f'{kind}_shared']:.2f} ({kind})"
        for kind in ("linear", "softmax")
        if kind in config.kinds
    )
    others = _softmax_at_other_gains(dataset, config)
    dropped = int(dataset.dropped.sel(reading="token").sum())
    return (
        f"Depth multiplies the log ratio of lone flows by {ends['large']:.0f} in random linear "
        f"stacks of large weights, by {softmax:.2g} at most in softmax ones; in a shared prompt by "
        f"{shared}. Softmax stacks are judged at gain {config.gain:g}: at the others "
        f"{others} stacks have an interval above {config.factor:g}. "
        f"(a, b) {judged_panel.KEY}; medians over runs. The disparity is the median |log ratio| "
        "over pairs; the lead is the median log ratio, the larger flow of the first layer on top: "
        "it falls by regression to the mean and rises no faster than the disparity "
        '(docs/theory, "The amplification theorem"). (c) '
        f"Dashed: what a theorem on generic stacks asks for. (d) Gain {config.gain:g}; filled: "
        "untied, open: tied. (f) Filled: alone, open: two "
        f"of {config.shots} in a prompt. Grey: no change. Residual × {config.skips[0]:g}: over, or "
        f"less, that with × 1. {_training(dataset)} Trained linear stacks, too, amplify lone "
        f"demonstrations (× {ends['linear_trained']:.2g}) that overshoot, as the error says, and "
        f"not those of half the length (× {ends['linear_trained_halved']:.2g}). "
        f"d = {config.d}; {config.runs} runs of "
        f"{config.pairs} pairs, {config.many_pairs} for descent, {config.trained_runs} trained "
        f"ones of {config.trained_pairs}; left out: {dropped} pairs that overflow. Flows to the "
        "query's token; of descent and trained stacks to the prediction."
    )


def _softmax_at_other_gains(dataset, config):
    """How many of the lone random stacks, at gains that no row judges, amplify the disparity."""
    cases = [
        f"{kind}: {tying}gain {gain:g}"
        for kind in config.kinds[1:]
        for tying in ("", "tied, ")
        for gain in config.gains
        if gain != config.gain
    ]
    lows = [median_interval(disparity(dataset, case)[:, -1])[0] for case in cases]
    return f"{sum(low >= config.factor for low in lows)} of {len(lows)}"


def _training(dataset):
    """How far the trained stacks are from the best."""
    errors = dataset.error.sel(stage="trained").median("trained_run")
    named = [kind for kind in dataset.kind.values if not kind.endswith(HALVED)]
    many, single = (errors.sel(kind=named).isel(shots=i).values for i in (-1, 0))
    listed = ", ".join(f"{error:.2g} ({kind})" for kind, error in zip(named, many, strict=True))
    least = float(dataset.least_error.median("trained_run")[0])
    lost = int(dataset.status.sel(kind=named).str.startswith("diverged").sum())
    return (
        f"Trained stacks leave {listed} of the median error of predicting 0, where least squares "
        f"leaves none; with a single shot, which they never saw in training, {single.min():.2g} to "
        f"{single.max():.2g}, where it leaves {least:.2g}: as users of one demonstration all are "
        f"far from trained. {lost} runs diverged and are left out."
    )
