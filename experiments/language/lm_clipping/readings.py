"""What clipping does: changes by layer, gains of searches, and parts of them that are a shift."""

from functools import cached_property

import numpy as np

from experiments.language.lm_clipping.config import ALGORITHM, DROPPED, UNCLIPPED, WIDE
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.lm import readings
from lsa_lab.store import parts, results


class Numbers:
    """Changes of every data set, gains of searches, and label margins."""

    def __init__(self, dataset):
        main = parts.part(dataset)
        self.changes = {name: Changes(main.sel(task=name)) for name in main.task.values}
        self.gains = Gains(parts.part(dataset, "search"))
        self.margins = Margins(parts.part(dataset, "label_bias"))


class Changes:
    """A data set's changes by clipping, those in its shallow layer and in its deep one."""

    def __init__(self, dataset):
        self.dataset, config = dataset, results.config_of(dataset)
        self.change, self.high = dataset.edited - dataset.unclipped, max(config.rates)
        self.clipped = self.change.sel(rate=list(config.rates))
        self.first, self.last = dataset.end.values
        self.shallow, self.deep = (
            self.clipped.sel(layer=end, drop=True) for end in (self.first, self.last)
        )

    def flatness(self, part):  # [R]
        return self.deep.sel(reading="auc", part=part).mean("rate").values

    def collapse(self, part):  # [R]
        place = dict(layer=self.first, reading="auc", part=part, rate=self.high)
        return self.dataset.edited.sel(place).values

    def tolerance(self, part):  # [R]
        return (self.deep - self.shallow).sel(reading="auc", part=part, rate=self.high).values

    def drop_change(self, part):  # [R]
        place = dict(reading="accuracy", part=part, rate=DROPPED, layer=self.last)
        return self.change.sel(place).values

    def gain(self, reading):  # [R]
        """The change by the edit that is best for the other runs."""
        table = self.clipped.sel(reading=reading).transpose("run", ...).values
        return best_elsewhere(table.reshape(len(table), -1))

    def keys_alone(self):  # [R]
        place = dict(reading="auc", end=self.last, matrix="w_k")
        return (self.dataset.matrix_edited - self.dataset.unclipped).sel(place).values

    def few_shots(self):  # [R]
        """The AUC lost in the shallow layer with most demonstrations less that with fewest."""
        lost = self.dataset.shots_unclipped - self.dataset.shots_edited
        return _most_less_fewest(lost.sel(reading="auc", end=self.first).mean("part"))

    def more_shots(self):  # [R]
        """The AUC of the unclipped model with most demonstrations less that with fewest."""
        return _most_less_fewest(self.dataset.shots_unclipped.sel(reading="auc"))


def _most_less_fewest(values):  # (run, shots) -> [R]
    shots = values.shots.values
    return (values.sel(shots=max(shots)) - values.sel(shots=min(shots))).values


class Gains:
    """What searches and their rivals gain, averaged over data sets."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.test = dataset.clipped - dataset.unclipped  # on fresh sentences
        base, fitted = (dataset.unclipped.sel(reading=each) for each in ("accuracy", "fitted"))
        rivals = {"calibrated": dataset.calibrated - base, "threshold fitted": fitted - base}
        self.rivals = {name: averaged(values) for name, values in rivals.items()}

    def gain(self, search):  # [R]
        """The gain of accuracy by the wider search, or the mean over both parts of Algorithm 1."""
        values = self.test.sel(reading="accuracy")
        if search == "more layers":
            return averaged(values.sel(search=WIDE))
        return averaged(values.sel(search=list(ALGORITHM)).mean("search"))


def averaged(values):  # (task, run) -> [R]
    return values.mean("task").values


class Margins:
    """What edits do to the accuracy by label margins, by data set, run and edit."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    @cached_property
    def changes(self):  # (task, run, edit) each
        """The changes of accuracy: all of it, what a shift does, and the rest."""
        margin, label = self.dataset.task_margin, self.dataset.task_label.values
        values = margin.values.astype(float)
        numbers = np.empty((2, *values.shape[:3]))
        for i, run, edit in np.ndindex(values.shape[:3]):
            own, right = values[i, run], label[i, run]
            scores = np.stack([0 * own[edit], own[edit]], axis=1)
            numbers[0, i, run, edit] = readings.accuracy(scores, right)
            numbers[1, i, run, edit] = move_threshold(own[edit], right, own[0])
        table = margin.isel(task_sentence=0, drop=True)
        accuracies, at_moved = (table.copy(data=each) for each in numbers)
        unclipped = accuracies.sel(edit=UNCLIPPED)
        return accuracies - unclipped, at_moved - unclipped, accuracies - at_moved


def move_threshold(margin, label, base) -> float:
    """The accuracy of the unclipped margins at the threshold above which are as many of them as
    are above 0 of ``margin``: what a shift makes of the model that answers so often alike."""
    answers = np.zeros(len(base), int)
    answers[np.argsort(-base, kind="stable")[: int((margin > 0).sum())]] = 1
    return float((answers == label).mean())
