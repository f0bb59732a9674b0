"""What clipping a layer of a language model does to AUC and accuracy, and what is judged."""

from experiments.language.data_sets import cell_ids
from experiments.language.lm_clipping import claims
from experiments.language.lm_clipping.config import PARTS
from experiments.language.lm_clipping.panels import (
    LINES,
    layer_curves,
    plot_gains,
    plot_matrices,
    plot_shots,
)
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

AUCS = ("deep_is_flat", "drop", "dropped", "entropy", "deep_tolerates_more")
OTHERS = ("helps", "as_good_as_an_edit", "deep_accuracy", "few_shots", "more_shots", "keys_alone")
OTHERS += ("single_matrices",)


def plot(dataset):
    first = dataset.isel(task=0)
    figure, axes = style.stacked(6.75, (2.6, 2.4, 2.6), ((1, 1), (1, 1), (1, 1)))
    layer_curves(axes[0], first, "auc")
    layer_curves(axes[1], first, "accuracy")
    axes[0].set_title("classes told apart")
    axes[1].set_title("accuracy")
    for part, line in LINES.items():
        axes[0].plot([], [], line, color="grey", label=part)
    axes[0].legend(ncols=2, loc="lower right")
    plot_gains(axes[2], first)
    axes[2].set_title("clipping and its rivals")
    plot_shots(axes[3], first)
    _judge(axes[4:], dataset, 0)
    return figure


def appendix(dataset):
    """Cross-entropy after the best shift by layer, single matrices, and what is judged of the
    other collections of texts."""
    others = range(1, dataset.sizes["task"])
    heights, columns = (2.8, *(2.6 for _ in others)), ((1, 1), *((1, 1) for _ in others))
    figure, axes = style.stacked(6.75, heights, columns, first="g")
    first = dataset.isel(task=0)
    layer_curves(axes[0], first, "entropy")
    axes[0].set_ylabel("change of nats after best shift")
    plot_matrices(axes[1], first)
    for place in others:
        _judge(axes[2 * place : 2 * place + 2], dataset, place)
    return figure


def _judge(pair, dataset, place):
    """The rows of one collection of texts: AUCs by part, and the others."""
    name, task = results.config_of(dataset).tasks[place]
    statements, samples = evidence(claims, dataset)
    spans, labels = ((-0.15, 0.3), (-0.2, 0.3)), ("change of AUC or of nats", "accuracy or AUC")
    for ax, families, span, label in zip(pair, (AUCS, OTHERS), spans, labels, strict=True):
        ids = cell_ids(statements, name, families)
        judged_panel.rows(ax, statements, samples, span, ids)
        ax.set(xlabel=label, title=task.title)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    (name, task), *others = config.tasks
    first = claims.numbers(dataset)[name]
    flat = [first.flatness(part).mean() for part in PARTS]
    left = [first.collapse(part).mean() for part in PARTS]
    rest = ", ".join(each.title for _, each in others)
    of_rest = f", and what is judged on {rest}" if others else ""
    return (
        f"{config.model_name}, on {task.title}: clipping layer {deep} changes AUC by "
        f"{flat[0]:+.3f} (attention) and {flat[1]:+.3f} (MLP). At {high:g} layer {shallow} leaves "
        f"an AUC of {left[0]:.2f} and {left[1]:.2f}. "
        f"a, b: change by the layer that is clipped, and the rate; solid: attention, dashed: MLP; "
        f"bands: {level()} over sets. c: gains of the edit that is best for the other sets, beside "
        f"contextual calibration and a threshold fitted on other sentences, of the unclipped "
        f"model. d: by demonstrations. e, f: {judged_panel.KEY}. Appendix: cross-entropy after "
        f"the best constant shift; single matrices clipped at {config.matrix_rate:g}{of_rest}. "
        f"{config.runs} sets of {config.shots} demonstrations, {config.fresh} fresh sentences each."
    )
