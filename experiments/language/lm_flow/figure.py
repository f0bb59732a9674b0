"""What depth does to two flows in a language model, and what selection by the flow gains."""

import numpy as np

from experiments.language.data_sets import cell_ids
from experiments.language.lm_flow import claims
from experiments.language.lm_flow.config import MODES, READS, RULES
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

LINES = {  # flows: name, colour, marker, fill
    "alone": ("alone", style.COLOURS[0], "o", None),
    "shared": ("one prompt", style.COLOURS[1], "s", None),
    "untrained": ("untrained", style.BLACK, "^", "white"),
}
TITLES = {"margin": "flow of the label margin", "row": "flow of the query's row"}
FLOWS = (("disparity", "untrained"), ("order", "worth", "label"))
TICKS = (0.25, 0.5, 1, 2, 4, 8)
GRADS = style.METHOD["GradS"]
LOOKS = {rule: GRADS | {"mfc": "white"} for rule in RULES} | {"GradS": GRADS}
LOOKS |= {rule: style.METHOD[rule] for rule in RULES if not rule.startswith("GradS")}


def plot(dataset):
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    name = config.tasks[0][0]
    flows, pools = numbers.flows[name], numbers.pools[name]
    figure, axes = style.stacked(6.75, (2.5, 2.6), ((1, 1), (1, 1)))
    plot_layers(axes[:2], flows)
    axes[0].set_ylabel("|log ratio| / that of layer 1")
    plot_rules(axes[2], {rule: pools.predicts(rule) for rule in RULES})
    axes[2].set(title="what predicts worth", xlabel="rank correlation")
    random = pools.log_probabilities("random")
    gains = {rule: (pools.log_probabilities(rule) - random).mean(-1) for rule in RULES}
    plot_rules(axes[3], gains)
    axes[3].set(title=f"prompts of {config.grads.shots}", xlabel="nats more than a random choice")
    return figure


def appendix(dataset):
    """What is judged: flows and worths of each data set, then its pools and prompts."""
    config, judged = results.config_of(dataset), evidence(claims, dataset)
    selected, letter = (("predicts",), ("last", "prompts")), chr(ord("e") + 2 * len(config.tasks))
    return (
        plot_judged(config.tasks, judged, FLOWS, "e"),
        plot_judged(config.grads.tasks, judged, selected, letter),
    )


def plot_judged(tasks, judged, pair, letter):
    """Two panels of families for each data set."""
    (statements, samples), rows = judged, len(tasks)
    panels = [(name, task.title, families) for name, task in tasks for families in pair]
    figure, axes = style.stacked(6.75, [2.0] * rows, [(1, 1)] * rows, first=letter)
    for ax, (name, title, families) in zip(axes, panels, strict=True):
        ids = cell_ids(statements, name, families)
        ratios = families[0] == "disparity"
        if ratios:
            style.log_axes(ax, x=True, ticks=TICKS)
        judged_panel.rows(ax, statements, samples, (0.2, 10) if ratios else (-1, 1), ids)
        ax.set(title=title, xlabel="last layer / first" if ratios else "correlation, or as named")
    return figure


def plot_layers(axes, flows):
    """Geometric means over runs, as they are judged, and their intervals."""
    layers, ends, named = flows.dataset.layer.values, [0.5, 2.0], []
    for ax, read in zip(axes, READS, strict=True):
        middles = {}
        for i, (mode, (text, color, marker, fill)) in enumerate(LINES.items()):
            x = layers + 0.35 * (i - 1) * (layers > layers[0])
            look = {"color": color, "marker": marker, "mfc": fill or color, "ms": 4, "lw": 0.8}
            runs = flows.disparities(mode, read)
            points = style.ratio_points(ax, x, runs, capsize=1.5, elinewidth=0.8, **look)
            middles[text] = points[0, -1]
            ends += points[1:].ravel().tolist()
        ax.axhspan(1 / claims.FACTOR, claims.FACTOR, color="grey", alpha=0.2, lw=0)
        style.log_axes(ax, y=True)
        ax.set(xlabel="layers", title=TITLES[read], xticks=layers)
        named.append(middles)
    limits = max(0.9 * min(ends), 0.1), min(1.1 * max(ends), 30)
    ticks = [tick for tick in TICKS if limits[0] <= tick <= limits[1]]
    for ax, middles in zip(axes, named, strict=True):
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(limits)
        marks.end_labels(ax, middles, [color for _, color, *_ in LINES.values()])


def plot_rules(ax, values):  # {rule: [R]}
    """A row for each rule: the mean and its interval."""
    for row, (rule, runs) in enumerate(values.items()):
        ax.plot(style.mean_ends(runs[:, None]), [row, row], color=LOOKS[rule]["color"], lw=0.8)
        ax.plot(runs.mean(), row, ls="none", ms=4.5, **LOOKS[rule])
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(range(len(values)), list(values), fontsize=7)
    ax.set_ylim(len(values) - 0.4, -0.6)


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    (name, task), *_ = config.tasks
    flows, pools = numbers.flows[name], numbers.pools[name]
    alone, shared = (np.exp(np.log(flows.disparities(m, "margin")[:, -1]).mean()) for m in MODES)
    gain = pools.log_probabilities("GradS") - pools.log_probabilities("random")
    text = (
        f"{config.model_name}, on {task.title}: depth multiplies the log ratio of flows by "
        f"{alone:.2f} alone and by {shared:.2f} in one prompt. Prompts that GradS selects give "
        f"the right label {gain.mean():+.2f} nats against random ones. Worth is what a "
        f"demonstration alone adds to the log-probability of the query's label. Appendix: "
    )
    return text.replace(" -0", " \u22120")
