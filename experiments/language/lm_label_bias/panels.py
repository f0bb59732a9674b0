"""Panels of `lm_label_bias`: parts of the change of accuracy, changes of AUC, and accuracies."""

import numpy as np

from experiments.language.lm_label_bias.claims import SAME_AUC
from experiments.language.lm_label_bias.config import UNCLIPPED, strongest
from experiments.language.lm_label_bias.margins import Readings, accuracy, calibrated, fitted
from lsa_lab.harness.draw import style
from lsa_lab.store import results


def titles(dataset, kind="task") -> dict[str, str]:
    """The title of each data set, or the name of each other wording, by name."""
    config = results.config_of(dataset)
    if kind == "attack":
        return {name: name for name, _ in config.attacks}
    return {name: task.title for name, task in config.tasks}


def plot_parts(ax, dataset, kind="task", edit=None):
    """A point for each set of demonstrations: the change of accuracy by clipping over what the
    threshold, moved to give each label as often, does to the unclipped model."""
    edit = edit or strongest(results.config_of(dataset))
    changes, shifts, _ = (part.sel(edit=edit) for part in Readings(dataset).parts(kind))
    limit = 1.1 * max(0.05, float(np.abs(changes).max()), float(np.abs(shifts).max()))
    ax.plot([-limit, limit], [-limit, limit], color=style.BLACK, lw=0.8, ls="--", zorder=0)
    for (name, title), look in zip(titles(dataset, kind).items(), looks(), strict=False):
        place = {kind: name}
        ax.plot(shifts.sel(place), changes.sel(place), ls="none", label=title, **look)
    ax.legend(loc="upper left", handletextpad=0.2)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
    ax.set(xlabel="change by a moved threshold", ylabel="change of accuracy by clipping")


def plot_aucs(ax, dataset):
    """The change of AUC by every edit, and by the control's."""
    config = results.config_of(dataset)
    readings = Readings(dataset)
    changes = readings.changes_of_auc().drop_sel(edit=UNCLIPPED)
    names = list(changes.edit.values)
    ax.axvspan(-SAME_AUC, SAME_AUC, color="grey", alpha=0.2, lw=0)
    plot_rows(ax, {name: changes.sel(task=name).values for name in titles(dataset)})
    row, runs = len(names), readings.control()[:, None]
    look = next(looks())
    ax.plot(style.mean_ends(runs), [row, row], color=look["color"], lw=0.8)
    ax.plot(runs.mean(0), [row], ls="none", **look)
    words = [*names, f"{strongest(config)},\nlayer {config.shallow}"]
    ax.set_yticks(range(len(words)), words)
    ax.set(ylim=(len(words) - 0.5, -0.5), xlabel="change of AUC", title="classes told apart")


def plot_accuracies(ax, dataset):
    """The accuracy of the unclipped model, of clipped ones, and of the unclipped one's rivals."""
    readings = Readings(dataset)
    accuracies = readings.table(accuracy)
    rivals = {"calibrated": calibrated, "threshold fitted": fitted}
    rows = {}
    for name in titles(dataset):
        columns = [accuracies.sel(task=name).values]
        for rival in rivals.values():
            columns.append(readings.rival(rival).sel(task=name).values[:, None])
        rows[name] = np.concatenate(columns, axis=1)
    plot_rows(ax, rows)
    words = [*accuracies.edit.values, *rivals]
    ax.axvline(0.5, color="grey", lw=0.8, ls=":")
    ax.set_yticks(range(len(words)), words)
    ax.set(ylim=(len(words) - 0.5, -0.5), xlabel="accuracy on fresh sentences")
    ax.set_title("clipped and its rivals")


def plot_rows(ax, rows):
    """A row for each column of the runs [R, C] of each task: means and their intervals."""
    shifts = np.linspace(-0.22, 0.22, len(rows))
    for runs, shift, look in zip(rows.values(), shifts, looks(), strict=False):
        y = np.arange(runs.shape[1]) + shift
        ax.plot(style.mean_ends(runs), [y, y], color=look["color"], lw=0.8)
        ax.plot(runs.mean(0), y, ls="none", **look)


def looks():
    """A colour and a marker for each data set; its methods stand in rows."""
    pairs = zip(style.COLOURS, style.MARKERS, strict=False)
    return ({"color": color, "marker": marker} for color, marker in pairs)
