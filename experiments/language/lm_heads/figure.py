"""Heads that answers need, layer by layer, and what common maps of the tokens miss."""

from experiments.language.lm_heads import panels
from experiments.language.lm_heads.claims import importances, margins_kept, pseudo_values, samples
from experiments.language.lm_heads.config import FIRST, PRUNED, TOP, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

HEADLINE = {
    "first_change": "first layer: N / H, by change",
    "one_is_enough": "later layer: left with its top head",
    "one_is_too_few": "first layer: left with its top head",
    "pruned": "order kept: later heads pruned",
    "top_heads": "order kept: top less random heads",
    "map": "missed by any function of the word",
}
MORE = {
    "first_mean": "first layer: N / H, by mean ablation",
    "first_rise": "first layer: N / H, by rise of the loss",
    "slopes": "slopes and rises, ranks",
    "ablations": "zero and mean ablation, ranks",
    "first_pruned": "order kept: later less first pruned",
    "map_relative": "missed of directions",
}
COUNTS = {
    "later_change": "later layer: N, by change",
    "later_rise": "the same, by rise of the loss",
    "later_mean": "the same, by mean ablation",
    "first_layer": "closed whole: first / later layer",
}


def plot(dataset):
    first = dataset.isel(task=0)
    figure, axes = style.stacked(6.75, (2.2, 2.2, 1.9), ((1, 1), (1, 1), (1,)))
    panels.effective_heads(axes[0], first)
    panels.layers(axes[1], first)
    panels.order_kept(axes[2], first)
    panels.common_maps(axes[3], first)
    judged(axes[4], dataset, first, HEADLINE, (-1.0, 1.2))
    axes[4].set(xlabel="share, ratio or correlation", title="what is judged")
    return figure


def appendix(dataset):
    """All rows that are judged, of each task."""
    names = dataset.task.values
    figure, axes = style.stacked(6.75, (2.6, 1.3) * len(names), ((1,), (1,)) * len(names), "f")
    for i, name in enumerate(names):
        of_task = dataset.sel(task=name)
        judged(axes[2 * i], dataset, of_task, HEADLINE | MORE, (-1.0, 1.2))
        axes[2 * i].set_title(f"{str(name).replace('_', ' ')}: shares, ratios, correlations")
        style.log_axes(axes[2 * i + 1], x=True, ticks=(0.1, 0.3, 1, 3, 9))
        judged(axes[2 * i + 1], dataset, of_task, COUNTS, (0.05, 12.0))
        axes[2 * i + 1].set_title("heads, and a ratio")
    return figure


def judged(ax, dataset, of_task, labels, span):
    name = str(of_task.task.values)
    rows = statements(results.config_of(dataset))
    values = samples(dataset)
    labels = {f"{name}_{id}": text for id, text in labels.items() if f"{name}_{id}" in values}
    judged_panel.rows(ax, rows, values, labels, span)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (name, task), *_ = config.tasks
    first = dataset.sel(task=name)
    values = samples(dataset)
    every = importances(first, config.searched)
    count = pseudo_values(every["change"]).mean(0)
    saved = pseudo_values(every["rise"]).mean(0)
    by_rise = f" ({saved[0]:.1f} and {saved[1:].mean():.1f} by the loss that they save)"
    kept = {mask: rows.mean() for mask, rows in margins_kept(first).items()}
    heads = first.sizes["head"]
    return (
        f"{config.model_name}, on {task.title}: {min(count[0], heads):.1f} of {heads} heads are "
        f"effective in the first layer, {count[1:].mean():.1f} in later ones, by how far they "
        f"change answers{by_rise if config.rises_judged else ''}. With one head in each later "
        f"layer, answers correlate with the whole model's by {kept[PRUNED]:.2f}. "
        "a: exp(entropy) of the heads' shares of the change of answers, averaged over sets "
        "(points: closed; rings: at their mean write), and of the absolute slopes (blue; grey: "
        "random weights). b: dots, one head closed; black, all of the layer; blue, all but its top "
        f"one. c: ranks of margins; first layer pruned {kept[FIRST]:.2f}, top {config.kept} heads "
        f"of each layer {kept[TOP]:.2f}. d: tokens of {config.map_shots} demonstrations, "
        "|H_l - H_0 Wᵀ| / |H_l - H_0| with the best W (held out: of tokens that W, the shortest "
        "fit, was not fitted to; with about as many words as dimensions it overfits), and what "
        "the best function of the word misses; the first token is up to "
        f"{_longest(first):.0f} times as long as the others are in the median, and fits itself. "
        f"e: {judged_panel.KEY}. Appendix: all rows; slopes rank heads as closing them does by "
        f"{values[name + '_slopes'].mean():.2f}. {config.runs} sets of {config.shots} "
        f"demonstrations; {config.fresh} sentences each, {config.masked_fresh} in c; means, 95 % "
        "intervals."
    )


def _longest(dataset) -> float:
    return float((dataset.first_length / dataset.length).mean("run").max())
