"""What depth does to two flows: layer by layer, and in the stacks that are judged."""

import numpy as np

from experiments.flow import layer_lines
from experiments.flow.amplification import claims
from experiments.flow.amplification.changes import case_runs, disparity, risk_ratios
from experiments.flow.amplification.claims import FACTOR, GENERIC
from experiments.flow.amplification.stacks import stacks
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level, median_interval
from lsa_lab.store import results

METHODS = {"linear": "linear", "softmax": "softmax"}
METHODS |= {"norm": "softmax, norm", "MLP": "softmax, norm, MLP"}
PARTS = {"linear": "linear", "softmax": "softmax", "norm": "+ norm", "MLP": "+ norm, MLP"}
READINGS = {  # title, label and limits of the axis
    "disparity": ("more unequal?", "|log ratio|, last layer / first", (0.15, 35.0)),
    "lead": ("lead grows?", "log ratio, last less first", (-2.2, 2.2)),
}
SPOKEN_OF = (  # stacks
    *("linear, largest gain", "linear, smallest gain", "linear, shared", "softmax, tied"),
    *("softmax", "softmax, shared", "positive feedback", "descent"),
    *("trained linear, alone", "trained linear, shared", "trained softmax, shared"),
)
RANDOM_SOFTMAX = (
    *("softmax", "softmax, tied", "softmax and norm", "softmax and norm, tied"),
    *("softmax, norm and MLP", "softmax, norm and MLP, tied"),
)
OF_PAIRS = ("theorem_1", "theorem_1_strict", "order", "kappa", "kappa_frozen")
SHARES = {"larger": "ends larger", "growth": "grows in every layer", "flips": "turns"}


def plot(dataset):
    config, judged = results.config_of(dataset), evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.8), ((1, 1, 1), (1.1, 1, 0.9)))
    _draw_alone(axes[0], dataset, config)
    _draw_shared(axes[1], dataset, config)
    _draw_trained(axes[2], dataset, config)
    axes[0].set_ylabel("|log ratio| of two flows / layer 1")
    _draw_readings(axes[3:5], *judged, SPOKEN_OF)
    judged_panel.rows(axes[5], *judged, (0.0, 1.0), OF_PAIRS)
    axes[5].set(title="linear stacks", xlabel="share of the pairs")
    return figure


def appendix(dataset):
    """Every stack that is judged."""
    judged, every = evidence(claims, dataset), stacks(results.config_of(dataset))
    figure, axes = style.stacked(6.75, (5.4,), ((1, 1, 1),), "g")
    _draw_readings(axes[:2], *judged, every)
    _draw_shares(axes[2], dataset, [every[name] for name in every if name in _ids(*judged)])
    return figure


def caption(dataset) -> str:
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    ids = _ids(statements, samples)
    ends = {stack: np.median(samples[id]) for stack, id in ids.items()}
    large = ends["linear, largest gain"]
    softmax = max(ends[stack] for stack in RANDOM_SOFTMAX if stack in ends)
    shared = " and ".join(
        f"{ends[f'{kind}, shared']:.2f} ({kind})"
        for kind in ("linear", "softmax")
        if kind in config.kinds
    )
    dropped = int(dataset.dropped.sum())
    return (
        f"Depth multiplies the log ratio of lone flows by {large:.0f} in random linear "
        f"stacks of large weights, by {softmax:.2g} at most in softmax ones. In a shared prompt "
        f"it does so by {shared}. a-c: medians over runs, {level()} intervals; grey: no change. "
        f"a: tied, gain {config.gain:g} where none is named; at other gains "
        f"{_softmax_at_other_gains(dataset)} softmax stacks have an interval above "
        f"{FACTOR:g}. b: gain {config.gain:g}. c: shared: two "
        f"of {max(config.models[0][1].task.lengths)} in a prompt. "
        f"d-f: {judged_panel.KEY}. e: the larger flow of layer 1 on top; "
        "its lead falls by regression to the mean "
        '(docs/theory, "The amplification theorem"). f: random stacks, worst gain and tying; κ: '
        "the order of self-couplings. "
        f"Appendix: g-i, every stack (residual × {config.skips[0]:g}: over, or less, that with "
        "× 1; dashed: what a theorem asks for). "
        f"{_training(dataset)} d = {config.d}; "
        f"{config.runs} runs of {config.pairs} pairs, {config.many_pairs} for descent, "
        f"{config.trained_runs} trained ones of {config.trained_pairs}; {dropped} pairs overflow, "
        "left out. Flows to the query's token; of descent and trained stacks to the prediction."
    )


def _softmax_at_other_gains(dataset):
    """How many of the lone random stacks, at gains that no row judges, amplify the disparity."""
    config = results.config_of(dataset)
    cases = [
        f"{kind}: {tying}gain {gain:g}"
        for kind in config.kinds[1:]
        for tying in ("", "tied, ")
        for gain in config.gains
        if gain != config.gain
    ]
    lows = [median_interval(disparity(dataset, case)[:, -1])[0] for case in cases]
    return f"{sum(low >= FACTOR for low in lows)} of {len(lows)}"


def _training(dataset):
    """How far the trained stacks are from the best."""
    config = results.config_of(dataset)
    task = config.models[0][1].task
    listed = ", ".join(f"{ratio:.2f} ({kind})" for kind, ratio in risk_ratios(dataset).items())
    return (
        f"Excess risk of the trained stacks over that of the Bayes rule: {listed}; their d is "
        f"{task.d}, the noise {task.noise_std:g}."
    )


def _draw_alone(ax, dataset, config):
    """Tied linear stacks of the largest gain, and every kind at the usual one."""
    largest, depth = f"gain {config.gains[-1]:g}", config.depth
    change = disparity(dataset, f"linear: tied, {largest}")
    text = f"linear,\n{largest}: × {np.median(change[:, -1]):.0f}"
    layer_lines.draw(ax, change, text, "linear", offset=(-12, 0))
    ends = {}
    for i, kind in enumerate(config.kinds):
        change = disparity(dataset, f"{kind}: tied, gain {config.gain:g}")
        look = {"beside": i - 1.5, "ls": "-" if i else "--"}
        ends[kind] = layer_lines.draw(ax, change, None, METHODS[kind], **look)
    linear, rest = ends.pop("linear"), [middle[-1] for middle in ends.values()]
    text, late = f"linear,\ngain {config.gain:g}: × {linear[-1]:.0f}", max(depth - 3, 0)
    direct_label(ax, late + 1, linear[late], text, style.METHOD["linear"]["color"], (7, -5))
    text = f"softmax stacks:\n× {min(rest):.2g} to {max(rest):.2g}"
    color = style.METHOD["softmax"]["color"]
    direct_label(ax, depth - 0.5, max(rest), text, color, (0, 6))
    layer_lines.finish(ax, depth, FACTOR)
    ax.set_title("alone")


def _draw_shared(ax, dataset, config):
    ends = {}
    for i, kind in enumerate(config.kinds):
        change = disparity(dataset, f"{kind}: gain {config.gain:g}", mode="together")
        middle = layer_lines.draw(ax, change, None, METHODS[kind], beside=i - 1.5)
        ends[f"{PARTS[kind]} × {middle[-1]:.2f}"] = middle[-1], METHODS[kind]
    layer_lines.finish(ax, config.depth, FACTOR)
    _name_ends(ax, ends)
    ax.set_title("shared")


def _draw_trained(ax, dataset, config):
    """Filled: a demonstration alone; open: two of many in a prompt."""
    lines, ends = [("linear", "alone"), *((kind, "together") for kind, _ in config.models)], {}
    for i, (kind, mode) in enumerate(lines):
        change = disparity(dataset, f"trained: {kind}", reading="prediction", mode=mode)
        look = {"mfc": "white"} if mode == "together" else {}
        middle = layer_lines.draw(ax, change, None, METHODS[kind], (i - 1) / 2, **look)
        ends[f"{kind}, {'alone' if mode == 'alone' else 'shared'}"] = middle[-1], METHODS[kind]
    layer_lines.finish(ax, len(dataset.trained_layer), FACTOR)
    _name_ends(ax, ends)
    ax.set_title("trained")


def _name_ends(ax, ends):
    """{name: (height, method)} of lines."""
    colors = [style.METHOD[method]["color"] for _, method in ends.values()]
    end_labels(ax, {name: height for name, (height, _) in ends.items()}, colors)


def _ids(statements, samples, reading="disparity") -> dict[str, str]:
    """{stack: id} of the rows of a reading that are judged."""
    return {
        cell.case["stack"]: cell.id
        for cell in cells_of(statements)
        if cell.id.endswith(reading) and samples[cell.id] is not None
    }


def _draw_readings(axes, statements, samples, names):
    """The disparity and the lead of these stacks, as they are judged."""
    for ax, (reading, (title, label, limits)) in zip(axes, READINGS.items(), strict=True):
        ax.set(title=title, xlabel=label, xscale="log" if reading == "disparity" else "linear")
        ids = _ids(statements, samples, reading)
        kept = [ids[name] for name in names if name in ids]
        judged_panel.rows(ax, statements, samples, limits, kept)
    layer_lines.decimals(axes[0].xaxis, axes[0].get_xlim())
    axes[1].set_yticklabels([])


def _draw_shares(ax, dataset, stacks):
    """Shares of the pairs in every stack, and what a theorem on generic stacks asks for."""
    cases = [(each.cases[0], {"mode": each.mode, "reading": each.reading}) for each in stacks]
    looks = zip(style.COLOURS[3:], style.MARKERS, strict=True)
    for (name, label), (colour, marker) in zip(SHARES.items(), looks, strict=False):
        values = [np.median(case_runs(dataset, name, case, **which)) for case, which in cases]
        ax.plot(values, np.arange(len(cases)), marker, color=colour, label=label)
    ax.axvline(GENERIC, color="grey", lw=0.8, ls="--")
    ax.set_yticks(range(len(cases)), [""] * len(cases))
    ax.set(ylim=(len(cases) - 0.4, -0.6), xlim=(-0.03, 1.03), title="pairs whose ratio ...")
    ax.set(xlabel="share of the pairs")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), handletextpad=0.1)
