"""What depth does to two flows, layer by layer."""

import numpy as np

from experiments.flow.amplification import claims
from experiments.flow.amplification.claims import DISPARITY, FACTOR, changes
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

METHODS = {"linear": "linear", "softmax": "softmax"}
METHODS |= {"norm": "softmax, norm", "MLP": "softmax, norm, MLP"}
RATIOS = (0.5, 1, 2, 5, 10, 100)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.8, (1, 2))
    _draw_alone(axes[0], dataset, config)
    kinds = {METHODS[kind]: f"trained: {kind}, together" for kind, _ in config.trained}
    middles = {}
    for i, (name, case) in enumerate(kinds.items()):
        change = changes(dataset, case, DISPARITY)
        middles[name] = _draw_layers(axes[1], change, name, i - 1)
    ends = {f"{name} × {middle[-1]:.2f}": middle[-1] for name, middle in middles.items()}
    _finish_layers(axes[1], change.shape[1], "Trained stacks grow little")
    end_labels(axes[1], ends, [style.METHOD[name]["color"] for name in kinds])
    axes[0].set_ylabel("|log ratio| of two flows / layer 1")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    middle = {id: np.median(each) for id, each in samples.items() if each is not None}
    kinds = ("random_disparity", "tied_disparity")
    softmax = max(value for id, value in middle.items() if id.endswith(kinds))
    shares = np.median(claims.shares(dataset, "larger"), axis=0)
    return (
        f"At one gain {config.depth} layers multiply the log ratio of two demonstrations' "
        f"gradients by {middle['usual_disparity']:.0f} in random linear stacks, and by "
        f"{softmax:.2f} at most in softmax ones; in linear stacks of large weights by "
        f"{middle['large_disparity']:.0f}. Of pairs in linear stacks of all gains "
        f"{shares.min():.0%} to {shares.max():.0%} grow. In a each demonstration is alone; lines "
        f"are medians, {level()} intervals. Trained stacks have at most "
        f"{max(claims.risk_ratios(dataset).values()):.2f} times the Bayes rule's excess risk. "
        f"{config.runs} runs, d = {config.d}; {int(dataset.dropped.sum())} pairs overflow."
    )


def _draw_alone(ax, dataset, config):
    """Tied linear stacks of the largest gain, and every kind at the usual one."""
    largest, depth = f"gain {config.gains[-1]:g}", config.depth
    middle = _draw_layers(ax, changes(dataset, f"linear: tied, {largest}", DISPARITY), "linear")
    color = style.METHOD["linear"]["color"]
    direct_label(ax, depth, middle[-1], f"linear,\n{largest}: × {middle[-1]:.0f}", color, (-12, 0))
    ends = {}
    for i, kind in enumerate(config.kinds):
        change = changes(dataset, f"{kind}: tied, gain {config.gain:g}", DISPARITY)
        ends[kind] = _draw_layers(ax, change, METHODS[kind], i - 1.5, ls="-" if i else "--")
    linear, rest = ends.pop("linear"), [middle[-1] for middle in ends.values()]
    text, late = f"linear,\ngain {config.gain:g}: × {linear[-1]:.0f}", max(depth - 3, 0)
    direct_label(ax, late + 1, linear[late], text, color, (7, -5))
    text = f"softmax stacks:\n× {min(rest):.2g} to {max(rest):.2g}"
    direct_label(ax, depth - 0.5, max(rest), text, style.METHOD["softmax"]["color"], (0, 6))
    _finish_layers(ax, depth, "Large linear stacks grow")
    ax.set_yscale("log")
    _write_decimals(ax.yaxis, ax.get_ylim())


def _draw_layers(ax, change, name, beside=0.0, **look):  # change [R, L] -> [L]
    """Medians over runs with their intervals, in the look of a method. All lines begin at the first
    layer, and lie ``beside`` each other after it."""
    layers = np.arange(change.shape[1]) + 1
    x, look = layers + 0.07 * beside * (layers > 1), style.METHOD[name] | look
    style.median_points(ax, x, change, capsize=1.5, elinewidth=0.8, lw=0.8, ms=4, **look)
    return np.median(change, axis=0)


def _finish_layers(ax, depth, title):
    """In grey what is no change."""
    ax.axhspan(1 / FACTOR, FACTOR, color="grey", alpha=0.2, lw=0)
    ax.set(xlabel="layers", xlim=(0.7, depth + 0.3), xticks=range(1, depth + 1), title=title)


def _write_decimals(axis, limits):
    ticks = [tick for tick in RATIOS if limits[0] <= tick <= limits[1]]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)
