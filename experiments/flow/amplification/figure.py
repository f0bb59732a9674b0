"""What depth does to two flows: layer by layer, in the stacks that are judged, and by width."""

import numpy as np

from experiments.flow.amplification import claims
from experiments.flow.amplification.claims import FACTOR, changes, growths
from experiments.flow.amplification.stacks import WIDER
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

METHODS = {"linear": "linear", "softmax": "softmax"}
METHODS |= {"norm": "softmax, norm", "MLP": "softmax, norm, MLP"}
READINGS = {  # title, label and limits of the axis
    "disparity": ("more unequal?", "|log ratio|, last layer / first", (0.15, 35.0)),
    "lead": ("lead grows?", "log ratio, last less first", (-2.2, 2.2)),
}
RATIOS = (0.2, 0.5, 1, 2, 5, 10, 100)


def plot(dataset):
    config, judged = results.config_of(dataset), evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.7, 3.1), ((1, 1, 1), (1.1, 1, 0.9)))
    _draw_alone(axes[0], dataset, config)
    shared = {METHODS[kind]: f"{kind}: gain {config.gain:g}, shared" for kind in config.kinds}
    _draw_named(axes[1], dataset, "shared", shared)
    trained = {f"{kind}, shared": f"trained: {kind}, together" for kind, _ in config.trained}
    trained = {"linear, alone": "trained: linear, alone", **trained}
    _draw_named(axes[2], dataset, "trained", trained)
    axes[0].set_ylabel("|log ratio| of two flows / layer 1")
    stems = _stems(*judged)
    for ax, (reading, (title, label, limits)) in zip(axes[3:5], READINGS.items(), strict=True):
        ax.set(title=title, xlabel=label, xscale="log" if reading == "disparity" else "linear")
        judged_panel.rows(ax, *judged, limits, [f"{stem}_{reading}" for stem in stems])
    _write_decimals(axes[3].xaxis, axes[3].get_xlim())
    axes[4].set_yticklabels([])
    judged_panel.rows(axes[5], *judged, (0.0, 1.0), ("theorem_1", "theorem_1_strict", "order"))
    axes[5].set(title="linear stacks", xlabel="share of the pairs")
    return figure


def appendix(dataset):
    """The lead and the disparity by width, and what is judged of them."""
    judged = evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.3, 1.7), ((1, 1), (1, 1)), "g")
    labels = {"lead": "change of the log ratio", "disparity": "log growth of |log ratio|"}
    for i, (reading, label) in enumerate(labels.items()):
        _draw_widths(axes[i], dataset, reading)
        axes[i].set(title=f"the {reading}", ylabel=label)
        ids = [cell.id for cell in cells_of(judged[0]) if cell.family == f"width_{reading}"]
        judged_panel.rows(axes[2 + i], *judged, (-0.3, 0.3), ids)
        axes[2 + i].set(title="does it rise?", xlabel="slope for a doubling of the width")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    softmax = [
        np.median(samples[f"{id}_disparity"])
        for id in ("softmax_random", "softmax_tied", "MLP_random")
        if samples[f"{id}_disparity"] is not None
    ]
    most = f", by {max(softmax):.2g} at most in softmax stacks" if softmax else ""
    task, risk = config.trained[0][1].task, max(claims.risk_ratios(dataset).values())
    return (
        "Depth multiplies the log ratio of lone flows by "
        f"{np.median(samples['large_disparity']):.0f} in random linear stacks of large "
        f"weights{most}. Width hardly changes that (appendix). a-c: medians over runs; "
        f"{level()} intervals. c: shared prompts have {max(task.lengths)} demonstrations. "
        f"e: leads fall by regression to the mean. "
        "f: the gain and tying are the worst. "
        f"Trained stacks have at most {risk:.2f} times the Bayes rule's excess risk. "
        f"{config.runs} random runs of {config.pairs} pairs and {config.trained_runs} trained "
        f"ones; {int(dataset.dropped.sum())} pairs overflow."
    )


def _draw_alone(ax, dataset, config):
    """Tied linear stacks of the largest gain, and every kind at the usual one."""
    largest, depth = f"gain {config.gains[-1]:g}", config.depth
    change = changes(dataset, f"linear: tied, {largest}", "disparity")
    middle = _draw_layers(ax, change, "linear")
    color = style.METHOD["linear"]["color"]
    text = f"linear,\n{largest}: × {middle[-1]:.0f}"
    direct_label(ax, depth, middle[-1], text, color, (-12, 0))
    ends = {}
    for i, kind in enumerate(config.kinds):
        change = changes(dataset, f"{kind}: tied, gain {config.gain:g}", "disparity")
        ends[kind] = _draw_layers(ax, change, METHODS[kind], i - 1.5, ls="-" if i else "--")
    linear, rest = ends.pop("linear"), [middle[-1] for middle in ends.values()]
    text, late = f"linear,\ngain {config.gain:g}: × {linear[-1]:.0f}", max(depth - 3, 0)
    direct_label(ax, late + 1, linear[late], text, color, (7, -5))
    text = f"softmax stacks:\n× {min(rest):.2g} to {max(rest):.2g}"
    direct_label(ax, depth - 0.5, max(rest), text, style.METHOD["softmax"]["color"], (0, 6))
    _finish_layers(ax, depth, "alone")


def _draw_named(ax, dataset, title, cases):
    """Lines of cases, named at their ends; of trained stacks filled ones are alone, open ones share
    a prompt with others."""
    ends, colors = {}, []
    for i, (name, case) in enumerate(cases.items()):
        method = name if name in style.METHOD else METHODS[name.partition(",")[0]]
        look = {"mfc": "white"} if case.endswith("together") else {}
        change = changes(dataset, case, "disparity")
        middle = _draw_layers(ax, change, method, i - len(cases) / 2, **look)
        ends[f"{name} × {middle[-1]:.2f}"] = middle[-1]
        colors.append(style.METHOD[method]["color"])
    _finish_layers(ax, change.shape[1], title)
    end_labels(ax, ends, colors)


def _draw_layers(ax, change, name, beside=0.0, **look):  # change [R, L] -> [L]
    """Medians over runs with their intervals, in the look of a method. All lines begin at the first
    layer, and lie ``beside`` each other after it."""
    layers = np.arange(change.shape[1]) + 1
    x, look = layers + 0.07 * beside * (layers > 1), style.METHOD[name] | look
    style.median_points(ax, x, change, capsize=1.5, elinewidth=0.8, lw=0.8, ms=4, **look)
    return np.median(change, axis=0)


def _finish_layers(ax, depth, title):
    """Logarithmic axes, in grey what is no change."""
    ax.axhspan(1 / FACTOR, FACTOR, color="grey", alpha=0.2, lw=0)
    ax.set(yscale="log", xlabel="layers", xlim=(0.7, depth + 0.3), xticks=range(1, depth + 1))
    ax.set_title(title)
    _write_decimals(ax.yaxis, ax.get_ylim())


def _write_decimals(axis, limits):
    ticks = [tick for tick in RATIOS if limits[0] <= tick <= limits[1]]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _stems(statements, samples) -> list[str]:
    """The ids of the judged stacks, without their readings."""
    leads = [cell.id for cell in cells_of(statements) if "stack" in cell.case]
    kept = [id for id in leads if id.endswith("_lead") and samples[id] is not None]
    return [id.removesuffix("_lead") for id in kept]


def _draw_widths(ax, dataset, reading):
    heights, colors, ticks = {}, [], set()
    for i, (kind, (_, name)) in enumerate(WIDER.items()):
        look = {"color": style.COLOURS[i], "marker": style.MARKERS[i]}
        widths, runs = growths(dataset, kind, reading)
        style.median_points(ax, widths, runs, capsize=2, elinewidth=0.8, ms=4, lw=0.8, **look)
        heights[name.replace("covariates", "cov.")] = float(np.median(runs[:, -1]))
        colors.append(look["color"])
        ticks |= set(widths)
    ax.axhline(0, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=sorted(ticks))
    ax.set(xlabel="width")
    end_labels(ax, heights, colors)
