"""What depth does to two flows: layer by layer, and in the stacks that are judged."""

import numpy as np

from experiments.flow import layer_lines
from experiments.flow.amplification.claims import disparity, risk_ratios, runs_of, samples
from experiments.flow.amplification.stacks import LABELS, alone, stacks
from experiments.flow.amplification.statements import statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label, end_labels
from lsa_lab.statistics import median_interval

METHODS = {"linear": "linear", "softmax": "softmax"}
METHODS |= {"norm": "softmax, norm", "MLP": "softmax, norm, MLP"}
_MODES = ("alone", "together")
TRAINED = tuple((kind, mode) for kind in ("linear", "softmax", "MLP") for mode in _MODES)
READINGS = {  # title, label and limits of the axis
    "disparity": ("more unequal?", "|log ratio|, last layer / first", (0.15, 35.0)),
    "lead": ("lead grows?", "log ratio, last less first", (-2.2, 2.2)),
}
SPOKEN_OF = (  # stacks
    *("large", "small", "linear_shared", "softmax_tied", "softmax_random", "softmax_shared"),
    *("push", "descent", "linear_trained", "linear_trained_shared", "softmax_trained_shared"),
)
OF_PAIRS = {
    "theorem_1": "ratio ends larger",
    "theorem_1_strict": "grows in\nevery layer",
    "order": "order turns",
    "kappa": "as κ says",
    "kappa_frozen": "as κ says,\nfrozen",
}
SHARES = {"larger": "ends larger", "growth": "grows in every layer", "flips": "turns"}


def plot(dataset):
    config, numbers = results.config_of(dataset), samples(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.8), ((1, 1, 1), (1.1, 1, 0.9)))
    _draw_alone(axes[0], dataset, config)
    _draw_shared(axes[1], dataset, config)
    _draw_trained(axes[2], dataset, config)
    axes[0].set_ylabel("|log ratio| of two flows / layer 1")
    _draw_readings(axes[3:5], config, numbers, SPOKEN_OF)
    judged_panel.rows(axes[5], statements(config), numbers, OF_PAIRS, (0.0, 1.0))
    axes[5].set(title="linear stacks", xlabel="share of the pairs")
    return figure


def appendix(dataset):
    """Every stack that is judged."""
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (5.4,), ((1, 1, 1),), "g")
    _draw_readings(axes[:2], config, samples(dataset), _cases(config))
    _draw_shares(axes[2], dataset, config)
    return figure


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), samples(dataset)
    judged = [s.id for s in stacks(config) if numbers[f"{s.id}_disparity"] is not None]
    ends = {id: np.median(numbers[f"{id}_disparity"]) for id in judged}
    softmax = max(ends[id] for id in judged if id.endswith(("_random", "_tied")))
    shared = " and ".join(
        f"{ends[f'{kind}_shared']:.2f} ({kind})"
        for kind in ("linear", "softmax")
        if kind in config.kinds
    )
    dropped = int(dataset.dropped.sum())
    return (
        f"Depth multiplies the log ratio of lone flows by {ends['large']:.0f} in random linear "
        f"stacks of large weights, by {softmax:.2g} at most in softmax ones. In a shared prompt "
        f"it does so by {shared}. a-c: medians over runs, 95 % intervals; grey: no change. "
        f"a: tied, gain {config.gain:g} where none is named; at other gains "
        f"{_softmax_at_other_gains(dataset)} softmax stacks have an interval above "
        f"{config.factor:g}. b: gain {config.gain:g}. c: shared: two "
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
    return f"{sum(low >= config.factor for low in lows)} of {len(lows)}"


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
    layer_lines.finish(ax, depth, config.factor)
    ax.set_title("alone")


def _draw_shared(ax, dataset, config):
    ends = {}
    for i, kind in enumerate(config.kinds):
        change = disparity(dataset, f"{kind}: gain {config.gain:g}", mode="together")
        middle = layer_lines.draw(ax, change, None, METHODS[kind], beside=i - 1.5)
        ends[f"{LABELS[kind]} × {middle[-1]:.2f}"] = middle[-1], METHODS[kind]
    layer_lines.finish(ax, config.depth, config.factor)
    _name_ends(ax, ends)
    ax.set_title("shared")


def _draw_trained(ax, dataset, config):
    """Filled: a demonstration alone; open: two of many in a prompt."""
    kinds, ends = [kind for kind, _ in config.models], {}
    cases = {(kind, mode): alone(kind) if mode == "alone" else kind for kind, mode in TRAINED}
    cases = {key: case for key, case in cases.items() if case in kinds}
    for i, ((kind, mode), case) in enumerate(cases.items()):
        change = disparity(dataset, f"trained: {case}", reading="prediction", mode=mode)
        look = {"mfc": "white"} if mode == "together" else {}
        middle = layer_lines.draw(ax, change, None, METHODS[kind], (i - 1) / 2, **look)
        ends[f"{kind}, {'alone' if mode == 'alone' else 'shared'}"] = middle[-1], METHODS[kind]
    layer_lines.finish(ax, len(dataset.trained_layer), config.factor)
    _name_ends(ax, ends)
    ax.set_title("trained")


def _name_ends(ax, ends):
    """{name: (height, method)} of lines."""
    colors = [style.METHOD[method]["color"] for _, method in ends.values()]
    end_labels(ax, {name: height for name, (height, _) in ends.items()}, colors)


def _cases(config):
    """{id: (label, case, mode and reading)} of every stack that is judged; of several the first."""
    kinds = [kind for kind in ("linear", "softmax") if kind in config.kinds]
    weak = f"{config.skips[0]:g}"
    return {
        stack.id: (stack.label, stack.cases[0], {"mode": stack.mode, "reading": stack.reading})
        for stack in stacks(config)
    } | {
        f"{kind}_residual": (f"{kind}, residual × {weak}", f"{kind}: skip {weak}", {})
        for kind in kinds
    }


def _draw_readings(axes, config, numbers, ids):
    """The disparity and the lead of these stacks, as they are judged."""
    names = _cases(config)
    for ax, (reading, (title, label, limits)) in zip(axes, READINGS.items(), strict=True):
        ax.set(title=title, xlabel=label, xscale="log" if reading == "disparity" else "linear")
        labels = {f"{id}_{reading}": names[id][0] for id in ids if id in names}
        judged_panel.rows(ax, statements(config), numbers, labels, limits)
    layer_lines.decimals(axes[0].xaxis, axes[0].get_xlim())
    axes[1].set_yticklabels([])


def _draw_shares(ax, dataset, config):
    """Shares of the pairs in every stack, and what a theorem on generic stacks asks for."""
    cases = _cases(config).values()
    looks = zip(style.COLOURS[3:], style.MARKERS, strict=True)
    for (name, label), (colour, marker) in zip(SHARES.items(), looks, strict=False):
        values = [np.median(runs_of(dataset, name, case, **which)) for _, case, which in cases]
        ax.plot(values, np.arange(len(cases)), marker, color=colour, label=label)
    ax.axvline(config.generic, color="grey", lw=0.8, ls="--")
    ax.set_yticks(range(len(cases)), [""] * len(cases))
    ax.set(ylim=(len(cases) - 0.4, -0.6), xlim=(-0.03, 1.03), title="pairs whose ratio ...")
    ax.set(xlabel="share of the pairs")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), handletextpad=0.1)
