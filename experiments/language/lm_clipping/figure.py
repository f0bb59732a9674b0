"""What clipping a layer of a language model does to AUC and accuracy, and what is judged."""

from experiments.language.lm_clipping.claims import samples
from experiments.language.lm_clipping.panels import (
    LINES,
    layer_curves,
    plot_gains,
    plot_matrices,
    plot_shots,
)
from experiments.language.lm_clipping.statements import PARTS, statements
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
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.6, 2.4, 2.6), ((1, 1), (1, 1), (1, 1)))
    layer_curves(axes[0], dataset, "auc")
    layer_curves(axes[1], dataset, "accuracy")
    axes[0].set_title("classes told apart")
    axes[1].set_title("accuracy")
    for part, line in LINES.items():
        axes[0].plot([], [], line, color="grey", label=part)
    axes[0].legend(ncols=2, loc="lower right")
    plot_gains(axes[2], dataset)
    axes[2].set_title("clipping and its rivals")
    plot_shots(axes[3], dataset)
    judged = samples(dataset)
    rows = {f"{p.lower()}_{id}": f"{p}: {text}" for id, text in AUCS.items() for p in PARTS}
    judged_panel.rows(axes[4], statements(config), judged, rows, (-0.1, 0.3))
    axes[4].set(xlabel="change of AUC or of nats", title="what is judged")
    judged_panel.rows(axes[5], statements(config), judged, OTHERS, (-0.2, 0.3))
    axes[5].set(xlabel="accuracy or AUC", title="what is judged")
    return figure


def appendix(dataset):
    """Cross-entropy after the best shift by layer, and single matrices."""
    figure, axes = style.figure(6.75, 2.8, (1, 2), first="g")
    layer_curves(axes[0], dataset, "entropy")
    axes[0].set_ylabel("change of nats after best shift")
    plot_matrices(axes[1], dataset)
    return figure


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    flat = [judged[f"{part.lower()}_deep_is_flat"].mean() for part in PARTS]
    left = [judged[f"{part.lower()}_shallow_collapses"].mean() for part in PARTS]
    titles = " and ".join(task.title for _, task in config.tasks)
    return (
        f"{config.model_name}: clipping layer {deep} changes AUC by {flat[0]:+.3f} (attention) and "
        f"{flat[1]:+.3f} (MLP). At {high:g} layer {shallow} leaves an AUC of {left[0]:.2f} and "
        f"{left[1]:.2f}. "
        f"a, b: change by the layer that is clipped, and the rate; solid: attention, dashed: MLP; "
        f"bands: 95 % over sets. c: gains of the edit that is best for the other sets, beside "
        f"contextual calibration and a threshold fitted on other sentences, of the unclipped "
        f"model. d: by demonstrations. e, f: {judged_panel.KEY}. Appendix: g: cross-entropy after "
        f"the best constant shift; h: single matrices clipped at {config.matrix_rate:g}. {titles}; "
        f"{config.runs} sets of {config.shots} demonstrations, {config.fresh} fresh sentences each."
    )
