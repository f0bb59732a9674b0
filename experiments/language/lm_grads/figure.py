"""GradS against its rivals in a language model: single demonstrations, and prompts of several."""

import numpy as np

from experiments.language.data_sets import cell_ids
from experiments.language.lm_grads import claims
from experiments.language.lm_grads.config import READS, RULES
from experiments.language.lm_grads.pools import rule_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.lm.readings import auc
from lsa_lab.store import results

GRADS = style.METHOD["GradS"]
LOOKS = {
    rule: GRADS | {"mfc": GRADS["color"] if rule == "GradS" else "white"}
    for rule in RULES
    if rule.startswith("GradS")
}
LOOKS |= {rule: style.METHOD[rule] for rule in RULES if rule not in LOOKS}
LOOKS |= {rule: style.METHOD[rule] for rule in ("random", "no demonstrations")}
SINGLE = tuple(RULES)
PROMPTS = (*RULES, "no demonstrations")  # beside random choices
PREDICTS = ("predicts", "measures")
OTHERS = ("share", "last", "discriminates", "like_the_row", "length")
ACCURACY, AUC = style.COLOURS[0], style.BLACK


def plot(dataset):
    config = results.config_of(dataset)
    name = config.tasks[0][0]
    first, judged = claims.numbers(dataset)[name], evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.4, 2.5, 2.5), ((1, 1), (1.2, 1), (1, 1.2)))
    _draw_rows(axes[0], judged, name, PREDICTS, (-0.4, 0.8))
    axes[0].set(title="what predicts worth", xlabel="rank correlation")
    _draw_rules(axes[1], {rule: first.gains(rule) for rule in SINGLE})
    axes[1].set(title=f"each of the {config.shots} alone", xlabel="nats more than a random choice")
    random = first.log_probabilities("random")
    values = {rule: (first.log_probabilities(rule) - random).mean(-1) for rule in PROMPTS}
    _draw_rules(axes[2], values)
    axes[2].set(title=f"all {config.shots} in a prompt", xlabel="nats more than a random choice")
    _draw_readings(axes[3], first)
    _draw_layers(axes[4], first)
    _draw_rows(axes[5], judged, name, OTHERS, (-0.6, 1.4))
    axes[5].set(title="what else is judged", xlabel="correlation, or as named")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    name, task = config.tasks[0]
    first = claims.numbers(dataset)[name]
    margin, row = (first.predicts(rule_of(read)).mean() for read in READS)
    sizes = [first.measures(rule_of(read)).mean() for read in READS]
    best = first.gains("oracle").mean()
    gain = first.log_probabilities("GradS") - first.log_probabilities("random")
    queries = config.runs * config.fresh
    text = (
        f"GradS in {config.model_name} has rank correlation {margin:.2f} (by the row {row:.2f}) "
        f"with what demonstrations are worth. Its prompts of {config.shots} give the right label "
        f"{gain.mean():+.2f} nats against random ones. On {task.title}. Worth: what a "
        "demonstration, alone before a query, adds to the log-probability of the query's label. "
        f"a, f: {judged_panel.KEY}; size of it: how far it moves that, either way "
        f"({sizes[0]:.2f} and {sizes[1]:.2f}). b: mean worth of the {config.shots} that a rule "
        f"selects, less that of the pool; the oracle knows the label and gains {best:.2f}. c: the "
        f"same {config.shots} in one prompt, the best last, less random ones, on the same queries. "
        f"d: accuracy, and AUC of all {queries} queries. e: by the layer after which the flow is "
        f"taken. Contribution: how far the margin moves; what moves an answer far can lose more "
        f"nats than it can gain. Means over {config.runs} pools of {config.pool} demonstrations, "
        f"{config.fresh} queries each, {level()} intervals."
    )
    return text.replace(" -0", " \u22120")


def _draw_rows(ax, judged, name, places, span):
    statements, samples = judged
    judged_panel.rows(ax, statements, samples, span, cell_ids(statements, name, places))


def _draw_rules(ax, values):  # {rule: [R]}
    """A row for each rule: the mean and its interval."""
    for row, (rule, runs) in enumerate(values.items()):
        low, high = (end[0] for end in style.mean_ends(runs[:, None]))
        if np.isfinite(low):
            ax.plot([low, high], [row, row], color=LOOKS[rule]["color"], lw=0.8)
        ax.plot(runs.mean(), row, ls="none", ms=4.5, **LOOKS[rule])
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(range(len(values)), list(values), fontsize=7)
    ax.set_ylim(len(values) - 0.4, -0.6)


def _draw_readings(ax, pools):
    """Accuracy and AUC of the prompts that each rule selects, in the order of the panel before."""
    labels = pools.dataset.label.transpose("run", "query").values
    for row, rule in enumerate(("random", *PROMPTS)):
        margins = pools.margins(rule)
        hits = ((margins > 0) == labels).mean((0, 2))
        low, high = (end[0] for end in style.mean_ends(hits[:, None]))
        if np.isfinite(low):
            ax.plot([low, high], [row, row], color=ACCURACY, lw=0.8)
        ax.plot(hits.mean(), row, "o", ms=4.5, color=ACCURACY)
        scores = [np.stack([0 * each, each], axis=-1).reshape(-1, 2) for each in margins]
        mean_auc = np.mean([auc(each, labels.ravel()) for each in scores])
        ax.plot(mean_auc, row, "s", ms=4.5, color=AUC, mfc="white")
    names = ("random", *PROMPTS)
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.set(ylim=(len(names) - 0.4, -1.6), xlim=(0, 1.03), xlabel="accuracy, AUC")
    for x, text, color in ((0.66, "accuracy", ACCURACY), (0.92, "AUC", AUC)):
        direct_label(ax, x, -0.4, text, color, (0, 2))
    ax.set_title("answers after them")


def _draw_layers(ax, pools):
    layers = pools.dataset.layer.values
    for i, read in enumerate(READS):
        predicts, _ = pools.layer_curves(read)
        look = LOOKS[("GradS", "GradS, row")[i]] | {"ms": 4.5, "lw": 0.8}
        x = layers + 0.3 * i
        style.mean_points(ax, x, predicts, capsize=1.5, elinewidth=0.8, **look)
        direct_label(ax, x[-1], predicts[:, -1].mean(), read, look["color"], (6, 5 - 10 * i))
    ax.axhline(0, color="grey", lw=0.8)
    room = 0.3 * (layers[-1] - layers[0])
    ax.set(xticks=layers, xlim=(layers[0] - 0.1 * room - 0.5, layers[-1] + room))
    ax.set(xlabel="layers", ylabel="rank correlation", title="which layer's flow")
