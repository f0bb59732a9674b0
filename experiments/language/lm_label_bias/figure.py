"""What clipping does to accuracy beside what a moved threshold does, and what is judged."""

import dataclasses

from experiments.language.lm_label_bias import claims
from experiments.language.lm_label_bias.config import mildest, strongest
from experiments.language.lm_label_bias.margins import averaged, calibrated
from experiments.language.lm_label_bias.panels import plot_accuracies, plot_aucs, plot_parts
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.9, 2.9), ((1, 1), (1, 1)))
    plot_parts(axes[0], dataset, "task")
    axes[0].set_title(f"{strongest(config)}, layer {config.deep}")
    plot_aucs(axes[1], dataset)
    plot_accuracies(axes[2], dataset)
    statements, samples = evidence(claims, dataset)
    rows = [cell.id for cell in cells_of(statements) if cell.family == "a2_gain"]
    rows += ["calibration_gains", "calibration", "threshold", "drop_accuracy", "most_is_bias"]
    judged_panel.rows(axes[3], statements, samples, (-0.2, 0.3), [*rows, "shift_mild"])
    axes[3].set(xlabel="accuracy, mean over data sets", title="what is judged")
    return figure


def appendix(dataset):
    """AUC and what no threshold does, for every wording."""
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    columns = (1, 1) if "attack" in dataset.dims else (1,)
    rows = wording_rows(statements, config)
    figure, axes = style.stacked(6.75, (0.4 + 0.17 * len(rows), 2.8), ((1,), columns), first="e")
    ids = [cell.id for cell in rows]
    judged_panel.rows(axes[0], rows, samples, (-0.06, 0.06), ids)
    axes[0].set(xlabel="change of AUC or accuracy", title="what is judged")
    plot_parts(axes[1], dataset, "task", edit=mildest(config))
    axes[1].set_title(mildest(config))
    if "attack" in dataset.dims:
        plot_parts(axes[2], dataset, "attack")
        axes[2].set_title(f"{strongest(config)}, other wordings")
    return figure


def wording_rows(statements, config):
    """Cells on single data sets, their like on all of them and the control, then other wordings."""
    attacks = dict(config.attacks)
    cells = [cell for cell in cells_of(statements) if cell.family in ("auc", "shift")]
    others = [cell for cell in cells if cell.case["data"] in attacks]
    whole = [cell for cell in cells_of(statements) if cell.id in ("drop_auc", "control")]
    return [
        dataclasses.replace(cell, label=f"{cell.label}, {claims.EVERYWHERE}")
        if cell.id == "shift_mild"
        else cell
        for cell in [*(cell for cell in cells if cell not in others), *whole, *others]
    ]


def caption(dataset) -> str:
    config, readings = results.config_of(dataset), claims.numbers(dataset)
    edit = strongest(config)
    names = [name for name, _ in config.tasks]
    changes = [readings.change_of_auc(name, edit).mean() for name in names]
    rest = max((readings.rest(name, edit).mean() for name in names), key=abs)
    gain = averaged(readings.gain(edit)).mean()
    calibration = averaged(readings.rival(calibrated) - readings.base).mean()
    shallow, shallow_rest = (part.mean() for part in readings.control_parts())
    return (
        f"{config.model_name}: {edit} in layer {config.deep} changes accuracy by {gain:+.3f}, AUC "
        f"by {min(changes):+.3f} to {max(changes):+.3f}. A moved threshold does the same to "
        f"{abs(rest):.3f}, calibration gains {calibration:+.3f}. "
        f"a: a set of demonstrations a point; dashed: equal. The threshold of the unclipped model "
        f"is moved until it gives each label as often as the clipped one; no label is used. "
        f"b: change of AUC, grey: none to speak of; last row: the control, whose accuracy changes "
        f"by {shallow:+.3f}, {shallow_rest:+.3f} of it no shift. c: accuracy; calibrated "
        f"by content-free texts, threshold fitted on other sentences. b, c: colours as in a, "
        f"{level()} intervals over sets. d: {judged_panel.KEY}; rest: what the threshold does not "
        f"do. "
        f"Appendix: e: all rows on single data sets and wordings; f, g: as a. {config.runs} sets "
        f"of {config.shots} demonstrations, {config.fresh} fresh sentences each, classes equally "
        f"often, texts of at most {config.tasks[0][1].most_words} words."
    )
