"""Accuracy, AUC and their parts from label margins, as `lm_label_bias` judges and draws them."""

from functools import cached_property

import numpy as np

from experiments.language.lm_label_bias.config import DROPPED, UNCLIPPED
from lsa_lab.judging.statistics import spearman
from lsa_lab.lm import readings
from lsa_lab.store import results

EVERYWHERE = "all data sets"


class Readings:
    """Statistics of the margins of a result, by data set or wording, run and edit."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.tables = {}

    def table(self, statistic, kind="task"):
        """A statistic of (margin [B], label [B], unclipped [B], content_free [K]) of each cell,
        with the axes kind, run, edit."""
        place = statistic, kind
        if place not in self.tables:
            self.tables[place] = _table(self.dataset, kind, statistic)
        return self.tables[place]

    def parts(self, kind="task"):
        """The change of accuracy by each edit: (all, what a shift does, what else it does)."""
        accuracies, at_moved = self.table(accuracy, kind), self.table(moved, kind)
        unclipped = accuracies.sel(edit=UNCLIPPED)
        return accuracies - unclipped, at_moved - unclipped, accuracies - at_moved

    def changes_of_auc(self, kind="task"):
        aucs = self.table(auc, kind)
        return aucs - aucs.sel(edit=UNCLIPPED)

    @cached_property
    def base(self):  # (task, run)
        """The accuracy of the unclipped model."""
        return self.table(accuracy).sel(edit=UNCLIPPED)

    def rival(self, statistic):  # (task, run)
        """The accuracy of the unclipped model with another threshold."""
        return self.table(statistic).sel(edit=UNCLIPPED)

    def gain(self, edit):  # (task, run)
        return self.table(accuracy).sel(edit=edit) - self.base

    def dropped(self, statistic, edit):  # [R]
        """A statistic without the MLP less that after an edit."""
        table = self.table(statistic)
        return averaged(table.sel(edit=DROPPED) - table.sel(edit=edit))

    def change_of_auc(self, data, edit):  # [R]
        return _runs(self.changes_of_auc(self._kind(data)).sel(edit=edit), data)

    def rest(self, data, edit):  # [R]
        """What an edit does to accuracy and a moved threshold does not."""
        _, _, rest = self.parts(self._kind(data))
        return _runs(rest.sel(edit=edit), data)

    def rest_beyond_half(self, edit):  # [R]
        """The size of that less half of the size of what the edit does."""
        changes, _, rest = self.parts()
        return averaged((np.abs(rest) - np.abs(changes) / 2).sel(edit=edit))

    def _kind(self, data):
        return "attack" if data in dict(self.config.attacks) else "task"

    def control(self) -> np.ndarray:  # [R]
        """The change of AUC by the shallow layer's edit, on the first task's first sentences."""
        return self._in_control(auc) @ (-1, 1)

    def control_parts(self) -> tuple[np.ndarray, np.ndarray]:  # [R] x 2
        """The change of accuracy by that edit, and the part of it that is no shift."""
        accuracies = self._in_control(accuracy)
        return accuracies @ (-1, 1), accuracies[:, 1] - self._in_control(moved)[:, 1]

    def _in_control(self, statistic) -> np.ndarray:  # [R, 2]
        margin = self.dataset.control_margin.values.astype(float)
        label = self.dataset.task_label.isel(task=0).values[:, : margin.shape[-1]]
        pairs = zip(margin, label, strict=True)
        return np.array([[statistic(m, y, run[0], None) for m in run] for run, y in pairs])


def averaged(values):  # (task, run) -> [R]
    return values.mean("task").values


def _runs(values, data):  # -> [R]
    """The runs on a data set, with another wording, or averaged over all data sets."""
    return averaged(values) if data == EVERYWHERE else values.sel({values.dims[0]: data}).values


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


def scores(margin) -> np.ndarray:  # [..., B] -> [..., B, 2]
    """Scores of two labels whose log-odds are the margin."""
    margin = np.asarray(margin, float)
    return np.stack([np.zeros_like(margin), margin], axis=-1)


def _table(dataset, kind, statistic):
    margin, label = dataset[f"{kind}_margin"], dataset[f"{kind}_label"].values
    free, values = dataset[f"{kind}_content_free"].values, margin.values.astype(float)
    base = values[:, :, 0]
    numbers = np.empty(values.shape[:3])
    for i, run, edit in np.ndindex(numbers.shape):
        cell = (values[i, run, edit], label[i, run], base[i, run], free[i, run])
        numbers[i, run, edit] = statistic(*cell)
    return margin.isel({f"{kind}_sentence": 0}, drop=True).copy(data=numbers)
