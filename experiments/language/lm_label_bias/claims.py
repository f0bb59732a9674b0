"""Accuracy, AUC and their parts from label margins, as `lm_label_bias` judges them."""

import numpy as np

from experiments.language.lm_label_bias.statements import (
    DROPPED,
    UNCLIPPED,
    strongest,
    word,
)
from lsa_lab import results
from lsa_lab.lm import readings
from lsa_lab.statistics import spearman


def scores(margin) -> np.ndarray:  # [..., B] -> [..., B, 2]
    """Scores of two labels whose log-odds are the margin."""
    margin = np.asarray(margin, float)
    return np.stack([np.zeros_like(margin), margin], axis=-1)


def table(dataset, kind, statistic):
    """A statistic of (margin [B], label [B], unclipped [B], content_free [K]) of each cell, with
    the axes kind, run, edit."""
    margin, label = dataset[f"{kind}_margin"], dataset[f"{kind}_label"].values
    free, values = dataset[f"{kind}_content_free"].values, margin.values.astype(float)
    base = values[:, :, 0]
    numbers = np.empty(values.shape[:3])
    for i, run, edit in np.ndindex(numbers.shape):
        cell = (values[i, run, edit], label[i, run], base[i, run], free[i, run])
        numbers[i, run, edit] = statistic(*cell)
    return margin.isel({f"{kind}_sentence": 0}, drop=True).copy(data=numbers)


def accuracy(margin, label, base, free):
    return readings.accuracy(scores(margin), label)


def auc(margin, label, base, free):
    return readings.auc(scores(margin), label)


def order(margin, label, base, free):
    """The rank correlation with the unclipped margins."""
    return spearman(margin, base)


def moved(margin, label, base, free):
    """The accuracy of the unclipped margins at the threshold above which are as many of them as
    are above 0 of ``margin``: what a shift makes of the model that answers so often alike."""
    answers = np.zeros(len(base), int)
    answers[np.argsort(-base, kind="stable")[: int((margin > 0).sum())]] = 1
    return float((answers == label).mean())


def calibrated(margin, label, base, free):
    """The accuracy after contextual calibration, of the unclipped model's content-free texts."""
    return readings.accuracy(readings.contextual_calibration(scores(margin), scores(free)), label)


def fitted(margin, label, base, free):
    """The accuracy at the threshold that is best for the other half of the sentences."""
    return readings.accuracy_after_best_shift(scores(margin), label)


def parts(dataset, kind="task"):
    """The change of accuracy by each edit: (all of it, what a shift does, what else it does)."""
    accuracies = table(dataset, kind, accuracy)
    unclipped, at_moved = accuracies.sel(edit=UNCLIPPED), table(dataset, kind, moved)
    return accuracies - unclipped, at_moved - unclipped, accuracies - at_moved


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    edit, mildest = strongest(config), f"MLP {min(config.rates):g}"
    judged = [*(f"MLP {rate:g}" for rate in config.rates), strongest(config, "attention")]
    changes, _, others = parts(dataset)
    aucs, accuracies = table(dataset, "task", auc), table(dataset, "task", accuracy)
    base = accuracies.sel(edit=UNCLIPPED)
    calibration = table(dataset, "task", calibrated).sel(edit=UNCLIPPED)
    threshold = table(dataset, "task", fitted).sel(edit=UNCLIPPED)
    clipped = accuracies.sel(edit=edit)
    values = {
        "shift_mild": others.sel(edit=mildest),
        "most_is_bias": (np.abs(others) - np.abs(changes) / 2).sel(edit=edit),
        "order": table(dataset, "task", order).sel(edit=edit),
        **{word("a2_gain", f"{r:g}"): changes.sel(edit=f"MLP {r:g}") for r in config.rates},
        "calibration_gains": calibration - base,
        "calibration": calibration - clipped,
        "threshold": threshold - clipped,
        "drop_auc": aucs.sel(edit=DROPPED) - aucs.sel(edit=edit),
        "drop_accuracy": accuracies.sel(edit=DROPPED) - clipped,
    }
    values = {id: cells.mean("task") for id, cells in values.items()}
    for name in dataset.task.values:
        values |= of_wording(name, aucs.sel(task=name), others.sel(task=name), judged, edit)
    if "attack" in dataset.dims:
        aucs, (_, _, others) = table(dataset, "attack", auc), parts(dataset, "attack")
        for name in dataset.attack.values:
            chosen = aucs.sel(attack=name), others.sel(attack=name)
            values |= of_wording(name, *chosen, [edit], edit)
    return {id: np.asarray(runs) for id, runs in values.items()} | {"control": control(dataset)}


def of_wording(name, aucs, others, judged, edit):
    """What is judged for one task or attack."""
    changes = aucs - aucs.sel(edit=UNCLIPPED)
    rows = {word("auc", name, each): changes.sel(edit=each) for each in judged}
    return rows | {word("shift", name): others.sel(edit=edit)}


def control(dataset) -> np.ndarray:  # [R]
    """The change of AUC by the shallow layer's edit, on the first task's first sentences."""
    return _in_control(dataset, auc) @ (-1, 1)


def control_parts(dataset) -> tuple[np.ndarray, np.ndarray]:  # [R] x 2
    """The change of accuracy by that edit, and the part of it that is no shift."""
    accuracies = _in_control(dataset, accuracy)
    return accuracies @ (-1, 1), accuracies[:, 1] - _in_control(dataset, moved)[:, 1]


def _in_control(dataset, statistic) -> np.ndarray:  # [R, 2]
    margin = dataset.control_margin.values.astype(float)
    label = dataset.task_label.isel(task=0).values[:, : margin.shape[-1]]
    return np.array(
        [[statistic(m, y, run[0], None) for m in run] for run, y in zip(margin, label, strict=True)]
    )
