"""Heads that answers need, layer by layer, and what common maps of the tokens miss."""

from experiments.language.data_sets import cell_ids
from experiments.language.lm_heads import claims, panels
from experiments.language.lm_heads.config import FIRST, PRUNED, TOP
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

HEADLINE = ("first change", "one_is_enough", "one_is_too_few", "pruned", "top_heads")
HEADLINE += ("common_map rows",)
MORE = ("first mean", "first rise", "slopes", "ablations", "first_pruned", "common_map directions")
COUNTS = ("later change", "later rise", "later mean", "first_layer")


def plot(dataset):
    first = dataset.isel(task=0)
    figure, axes = style.stacked(6.75, (2.2, 2.2, 1.9), ((1, 1), (1, 1), (1,)))
    panels.effective_heads(axes[0], first)
    panels.layers(axes[1], first)
    panels.order_kept(axes[2], first)
    panels.common_maps(axes[3], first)
    name = first.task.item()
    judged_rows(axes[4], evidence(claims, dataset), name, HEADLINE, (-1.0, 1.2))
    axes[4].set(xlabel="share, ratio or correlation", title="what is judged")
    return figure


def appendix(dataset):
    """All rows that are judged, of each task."""
    names = dataset.task.values
    figure, axes = style.stacked(6.75, (2.6, 1.3) * len(names), ((1,), (1,)) * len(names), "f")
    judged = evidence(claims, dataset)
    for i, name in enumerate(names):
        judged_rows(axes[2 * i], judged, name, HEADLINE + MORE, (-1.0, 1.2))
        axes[2 * i].set_title(f"{str(name).replace('_', ' ')}: shares, ratios, correlations")
        style.log_axes(axes[2 * i + 1], x=True, ticks=(0.1, 0.3, 1, 3, 9))
        judged_rows(axes[2 * i + 1], judged, name, COUNTS, (0.05, 12.0))
        axes[2 * i + 1].set_title("heads, and a ratio")
    return figure


def judged_rows(ax, judged, name, places, span):
    statements, samples = judged
    judged_panel.rows(ax, statements, samples, span, cell_ids(statements, name, places))


def caption(dataset) -> str:
    config = results.config_of(dataset)
    (name, task), *_ = config.tasks
    first = claims.numbers(dataset)[name]
    count = first.count("change").mean(0)
    by_rise = ""
    if config.rises_judged:
        saved = first.count("rise").mean(0)
        by_rise = f" ({saved[0]:.1f} and {saved[1:].mean():.1f} by the loss that they save)"
    kept = {mask: rows.mean() for mask, rows in first.kept.items()}
    heads = first.dataset.sizes["head"]
    return (
        f"{config.model_name}, on {task.title}: {min(count[0], heads):.1f} of {heads} heads are "
        f"effective in the first layer, {count[1:].mean():.1f} in later ones, by how far they "
        f"change answers{by_rise}. With one head in each later "
        f"layer, answers correlate with the whole model's by {kept[PRUNED]:.2f}. "
        "a: exp(entropy) of the heads' shares of the change of answers, averaged over sets "
        "(points: closed; rings: at their mean write), and of the absolute slopes (blue; grey: "
        "random weights). b: dots, one head closed; black, all of the layer; blue, all but its top "
        f"one. c: ranks of margins; first layer pruned {kept[FIRST]:.2f}, top {config.kept} heads "
        f"of each layer {kept[TOP]:.2f}. d: tokens of {config.map_shots} demonstrations, "
        "|H_l - H_0 Wᵀ| / |H_l - H_0| with the best W (held out: of tokens that W, the shortest "
        "fit, was not fitted to; with about as many words as dimensions it overfits), and what "
        "the best function of the word misses; the first token is up to "
        f"{_longest(first.dataset):.0f} times as long as the others are in the median, and fits "
        "itself. "
        f"e: {judged_panel.KEY}. Appendix: all rows; slopes rank heads as closing them does by "
        f"{first.slopes().mean():.2f}. {config.runs} sets of {config.shots} "
        f"demonstrations; {config.fresh} sentences each, {config.masked_fresh} in c; means, "
        f"{level()} intervals."
    )


def _longest(dataset) -> float:
    return float((dataset.first_length / dataset.length).mean("run").max())
