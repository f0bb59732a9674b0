"""Heads that answers need, layer by layer, and what common maps of the tokens miss."""

from experiments.language.lm_heads import panels
from experiments.language.lm_heads.claims import effective, importances, margins_kept, samples
from experiments.language.lm_heads.config import FIRST, PRUNED, TOP, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

HEADLINE = {
    "first_change": "first layer: N / H, by change",
    "first_rise": "the same, by rise of the loss",
    "one_is_enough": "later layer: left with its top head",
    "one_is_too_few": "first layer: left with its top head",
    "pruned": "order kept: later heads pruned",
    "top_heads": "order kept: top less random heads",
    "map": "missed by the best common map",
}
MORE = {
    "first_mean": "the same, by mean ablation",
    "slopes": "slopes and rises, ranks",
    "ablations": "zero and mean ablation, ranks",
    "first_pruned": "order kept: later less first pruned",
    "map_relative": "missed, every token relative",
    "map_held_out": "missed of other tokens",
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
    labels = {f"{name}_{id}": text for id, text in labels.items()}
    judged_panel.rows(ax, rows, samples(dataset), labels, span)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (name, task), *_ = config.tasks
    first = dataset.sel(task=name)
    numbers = {id: samples(dataset)[f"{name}_{id}"].mean() for id in HEADLINE | MORE | COUNTS}
    count = effective(importances(first, config.searched)["change"]).mean(0)
    kept = {mask: rows.mean() for mask, rows in margins_kept(first, config.searched).items()}
    heads = first.sizes["head"]
    return (
        f"{config.model_name}, on {task.title}: {count[0]:.1f} of {heads} heads are effective in "
        f"the first layer and {count[1:].mean():.1f} in later ones; with one head in each later "
        f"layer {max(kept[PRUNED], 0):.0%} of the answers' order is left. "
        "a: exp(entropy) of the heads' shares of the change of answers (points: closed, rings: at "
        "their mean write) and of the absolute slopes (line; grey: random weights). b: dots, one "
        "head closed; black, all of the layer; blue, all but its top one. c: rank correlation of "
        f"margins with the whole model's (first layer pruned {kept[FIRST]:.2f}, top {config.kept} "
        f"heads of each layer {kept[TOP]:.2f}). d: tokens of {config.map_shots} demonstrations; "
        f"the first is {_ratio(first):.0f} times as long as the median after the last layer; "
        f"dots: any function of a token's word. e: {judged_panel.KEY}. Appendix: all rows. "
        f"{config.runs} sets of {config.shots} demonstrations, {config.fresh} sentences each; "
        f"means, 95 % intervals. Slopes rank heads as closing them does by {numbers['slopes']:.2f}."
    )


def _ratio(dataset) -> float:
    return float((dataset.first_length / dataset.length).isel(after=-1).mean())
