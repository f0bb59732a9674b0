"""What clipping does to accuracy beside what a moved threshold does, and what is judged."""

from experiments.language.lm_label_bias.claims import control_parts, samples
from experiments.language.lm_label_bias.panels import (
    plot_accuracies,
    plot_aucs,
    plot_parts,
    titles,
)
from experiments.language.lm_label_bias.statements import statements, strongest, word
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.9, 2.9), ((1, 1), (1, 1)))
    plot_parts(axes[0], dataset, "task")
    axes[0].set_title(f"{strongest(config)}, layer {config.deep}")
    plot_aucs(axes[1], dataset)
    plot_accuracies(axes[2], dataset)
    rows = {
        **{word("a2_gain", f"{r:g}"): f"MLP {r:g} less unclipped" for r in config.rates},
        "calibration_gains": "calibrated less unclipped",
        "calibration": "calibrated less clipped",
        "threshold": "threshold less clipped",
        "drop_accuracy": "dropped less clipped",
        "most_is_bias": "|rest| less half of\n|change|",
        "shift_mild": f"rest, MLP {min(config.rates):g}",
    }
    judged_panel.rows(axes[3], statements(config), samples(dataset), rows, (-0.2, 0.3))
    axes[3].set(xlabel="accuracy, mean over data sets", title="what is judged")
    return figure


def appendix(dataset):
    """AUC and what no threshold does, for every wording."""
    config, judged = results.config_of(dataset), samples(dataset)
    columns = (1, 1) if "attack" in dataset.dims else (1,)
    rows = {
        statement.id: row_label(statement.id, dataset)
        for statement in statements(config)
        if statement.id.startswith(("auc_", "shift_", "drop_auc", "control"))
    }
    figure, axes = style.stacked(6.75, (0.4 + 0.17 * len(rows), 2.8), ((1,), columns), first="e")
    judged_panel.rows(axes[0], statements(config), judged, rows, (-0.06, 0.06))
    axes[0].set(xlabel="change of AUC or accuracy", title="what is judged")
    plot_parts(axes[1], dataset, "task", edit=f"MLP {min(config.rates):g}")
    axes[1].set_title(f"MLP {min(config.rates):g}")
    if "attack" in dataset.dims:
        plot_parts(axes[2], dataset, "attack")
        axes[2].set_title(f"{strongest(config)}, other wordings")
    return figure


def row_label(id, dataset):
    """A statement's name in the panel: the reading, the data set or wording, the edit."""
    config = results.config_of(dataset)
    fixed = {
        "shift_mild": f"rest, MLP {min(config.rates):g}, all data sets",
        "drop_auc": "AUC, dropped less clipped",
        "control": f"AUC, {strongest(config)}, layer {config.shallow}",
    }
    kinds = ["task"] + ["attack"] * ("attack" in dataset.dims)
    for kind in kinds:
        for name, title in titles(dataset, kind).items():
            for edit in dataset.edit.values:
                fixed[word("auc", name, edit)] = f"AUC, {title}, {edit}"
            fixed[word("shift", name)] = f"rest, {title}, {strongest(config)}"
    return fixed[id]


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    edit = strongest(config)
    names = [name for name, _ in config.tasks]
    changes = [judged[word("auc", name, edit)].mean() for name in names]
    rest = max((judged[word("shift", name)].mean() for name in names), key=abs)
    gain = judged[word("a2_gain", f"{max(config.rates):g}")].mean()
    calibration = judged["calibration_gains"].mean()
    shallow, shallow_rest = (part.mean() for part in control_parts(dataset))
    return (
        f"{config.model_name}: {edit} in layer {config.deep} changes accuracy by {gain:+.3f}, AUC "
        f"by {min(changes):+.3f} to {max(changes):+.3f}. A moved threshold does the same to "
        f"{abs(rest):.3f}, calibration gains {calibration:+.3f}. "
        f"a: a set of demonstrations a point; dashed: equal. The threshold of the unclipped model "
        f"is moved until it gives each label as often as the clipped one; no label is used. "
        f"b: change of AUC, grey: none to speak of; last row: the control, whose accuracy changes "
        f"by {shallow:+.3f}, {shallow_rest:+.3f} of it no shift. c: accuracy; calibrated "
        f"by content-free texts, threshold fitted on other sentences. b, c: colours as in a, 95 % "
        f"intervals over sets. d: {judged_panel.KEY}; rest: what the threshold does not do. "
        f"Appendix: e: all rows on single data sets and wordings; f, g: as a. {config.runs} sets "
        f"of {config.shots} demonstrations, {config.fresh} fresh sentences each, classes equally "
        f"often, texts of at most {config.tasks[0][1].most_words} words."
    )
