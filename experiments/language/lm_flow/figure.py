"""What depth does to two flows in a language model, and what selection by the flow gains."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_flow import claims
from experiments.language.lm_flow.config import MODES, READS, RULES
from lsa_lab.harness.draw import marks, style
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LINES = {  # flows: name, colour, marker, fill
    "alone": ("alone", style.COLOURS[0], "o", None),
    "shared": ("one prompt", style.COLOURS[1], "s", None),
    "untrained": ("untrained, one prompt", style.BLACK, "^", "white"),
}
TICKS = (0.25, 0.5, 1, 2, 4, 8)
GRADS = style.METHOD["GradS"]
LOOKS = {rule: GRADS | {"mfc": "white"} for rule in RULES} | {"GradS": GRADS}
LOOKS |= {rule: style.METHOD[rule] for rule in RULES if not rule.startswith("GradS")}


def plot(dataset):
    numbers = claims.numbers(dataset)
    flows, pools = (next(iter(each.values())) for each in (numbers.flows, numbers.pools))
    figure, axes = style.figure(6.75, 2.6, (1, 2))
    plot_layers(axes[0], flows)
    gains = {rule: pools.gain(rule) for rule in RULES}
    for row, (rule, runs) in enumerate(gains.items()):
        axes[1].plot(style.mean_ends(runs[:, None]), [row, row], color=LOOKS[rule]["color"], lw=0.8)
        axes[1].plot(runs.mean(), row, ls="none", ms=4.5, **LOOKS[rule])
    axes[1].axvline(0, color="grey", lw=0.8)
    axes[1].set_yticks(range(len(gains)), list(gains), fontsize=7)
    gain = gains["GradS"].mean()
    axes[1].set_title(f"GradS {'adds' if gain > 0 else 'takes away'} {abs(gain):.2f} nats")
    axes[1].set(xlabel="nats more than a random choice", ylim=(len(gains) - 0.4, -0.6))
    return figure


def plot_layers(ax, flows):
    """Geometric means over runs, as they are judged, and their intervals."""
    layers, middles = flows.dataset.layer.values, {}
    for i, (mode, (text, color, marker, fill)) in enumerate(LINES.items()):
        x = layers + 0.35 * (i - 1) * (layers > layers[0])
        look = {"color": color, "marker": marker, "mfc": fill or color, "ms": 4, "lw": 0.8}
        runs = flows.disparities(mode, "margin")
        points = style.ratio_points(ax, x, runs, capsize=1.5, elinewidth=0.8, **look)
        middles[text] = points[0, -1]
    ax.axhspan(1 / claims.FACTOR, claims.FACTOR, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="|log ratio| / that of layer 1", xticks=layers)
    ax.set_title(f"Lone ratios end at {middles['alone']:.1f}")
    ax.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    marks.end_labels(ax, middles, [color for _, color, *_ in LINES.values()])


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    (_, task), *_ = config.tasks

    def disparities(mode):  # over collections and readings
        every = (f.disparities(mode, read)[:, -1] for f in numbers.flows.values() for read in READS)
        return span([np.exp(np.log(each).mean()) for each in every])

    alone, shared = map(disparities, MODES)
    pools, rules = numbers.pools.values(), ("GradS", "GradS, row")
    gains = [each.gain(rule).mean() for each in pools for rule in rules]
    return (
        f"Depth multiplies the log ratio of two flows in {called(config.model_name)} by {alone} "
        f"alone and by {shared} in one prompt, by text and reading. Prompts that GradS selects "
        f"change the log-probability of the right label by {span(gains)} nats against random ones. "
        f"Panels are of {task.title}. The grey band is no change, and bars are {level()} "
        f"intervals over {config.runs} runs. The oracle takes the demonstrations that, each alone, "
        "make the right label most probable."
    )


def span(values) -> str:
    return " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values))))
