"""What clipping a layer of a language model does to AUC and accuracy, and what is judged."""

from experiments.language.lm_clipping.claims import samples
from experiments.language.lm_clipping.panels import (
    LINES,
    layer_curves,
    plot_gains,
    plot_matrices,
    plot_shots,
)
from experiments.language.lm_clipping.statements import PARTS, of_text, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

AUCS = {
    "deep_is_flat": "change, last layer",
    "drop": "dropped less clipped",
    "dropped": "accuracy, dropped",
    "entropy": "cross-entropy, last layer",
    "deep_tolerates_more": "last less first layer",
}
OTHERS = {
    "helps": "one edit, accuracy",
    "helps_auc": "one edit, AUC",
    "calibration": "calibrated less one edit",
    "threshold": "threshold less one edit",
    "deep_accuracy": "accuracy, last layer",
    "few_shots": "lost, most less fewest shots",
    "more_shots": "AUC, most less fewest shots",
    "keys_alone": "W_K alone",
    "single_matrices": "worst single matrix",
}


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
    config, judged = results.config_of(dataset), samples(dataset)
    name, task = config.tasks[place]
    by_part = {f"{p.lower()}_{id}": f"{p}: {text}" for id, text in AUCS.items() for p in PARTS}
    spans, labels = ((-0.15, 0.3), (-0.2, 0.3)), ("change of AUC or of nats", "accuracy or AUC")
    for ax, rows, span, label in zip(pair, (by_part, OTHERS), spans, labels, strict=True):
        rows = {of_text(name, id): text for id, text in rows.items()}
        judged_panel.rows(ax, statements(config), judged, rows, span)
        ax.set(xlabel=label, title=task.title)


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    (name, task), *others = config.tasks
    flat, left = (
        [judged[of_text(name, f"{part.lower()}_{id}")].mean() for part in PARTS]
        for id in ("deep_is_flat", "shallow_collapses")
    )
    rest = ", ".join(each.title for _, each in others)
    of_rest = f", and what is judged on {rest}" if others else ""
    return (
        f"{config.model_name}, on {task.title}: clipping layer {deep} changes AUC by "
        f"{flat[0]:+.3f} (attention) and {flat[1]:+.3f} (MLP). At {high:g} layer {shallow} leaves "
        f"an AUC of {left[0]:.2f} and {left[1]:.2f}. "
        f"a, b: change by the layer that is clipped, and the rate; solid: attention, dashed: MLP; "
        f"bands: 95 % over sets. c: gains of the edit that is best for the other sets, beside "
        f"contextual calibration and a threshold fitted on other sentences, of the unclipped "
        f"model. d: by demonstrations. e, f: {judged_panel.KEY}. Appendix: cross-entropy after "
        f"the best constant shift; single matrices clipped at {config.matrix_rate:g}{of_rest}. "
        f"{config.runs} sets of {config.shots} demonstrations, {config.fresh} fresh sentences each."
    )
