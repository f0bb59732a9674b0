"""What clipping does: changes by layer, gains of searches; and how singular values fall."""

import numpy as np

from experiments.language.lm_clipping.config import ALGORITHM, DROPPED, MATRICES, WIDE
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.store import parts, results


class Numbers:
    """Changes of every data set, and gains of searches."""

    def __init__(self, dataset):
        config, fresh = results.config_of(dataset), parts.part(dataset, "deep")
        self.changes = _by_task(parts.part(dataset), config)
        # Of the deepest layer those on fresh sets where there are such.
        self.deepest = self.changes | (_by_task(fresh, config) if fresh.variables else {})
        self.gains = Gains(parts.part(dataset, "search"))
        self.spectra = Ratios(parts.part(dataset, "spectra"))


def _by_task(dataset, config):
    rates = list(config.rates)
    return {name: Changes(dataset.sel(task=name), rates) for name in dataset.task.values}


class Changes:
    """A data set's changes by clipping, those in its shallow layer and in its deep one."""

    def __init__(self, dataset, rates):
        self.dataset = dataset
        self.change, self.high = dataset.edited - dataset.unclipped, max(rates)
        self.clipped = self.change.sel(rate=rates)
        self.first, self.last = min(dataset.layer.values), max(dataset.layer.values)

    def flatness(self, part, reading="auc"):  # [R]
        place = dict(layer=self.last, reading=reading, part=part)
        return self.clipped.sel(place).mean("rate").values

    def collapse(self, part):  # [R]
        place = dict(layer=self.first, reading="auc", part=part, rate=self.high)
        return self.dataset.edited.sel(place).values

    def tolerance(self, part):  # [R]
        by_layer = self.change.sel(reading="auc", part=part, rate=self.high)
        return (by_layer.sel(layer=self.last) - by_layer.sel(layer=self.first)).values

    def drop_change(self, part):  # [R]
        place = dict(reading="accuracy", part=part, rate=DROPPED, layer=self.last)
        return self.change.sel(place).values

    def gain(self):  # [R]
        """The change of accuracy by the edit that is best for the other runs."""
        table = self.clipped.sel(reading="accuracy").transpose("run", ...).values
        return best_elsewhere(table.reshape(len(table), -1))

    def alone(self, matrix):  # [R]
        place = dict(reading="auc", end=self.last, matrix=matrix)
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

    def apart(self, data, part):  # [R]
        """The gain of accuracy by Algorithm 1 on one part, of one data set."""
        place = dict(reading="accuracy", task=data, search=f"Algorithm 1, {part}")
        return self.test.sel(place).values

    def auc(self, part):  # [R]
        """The change of AUC by Algorithm 1 on one part."""
        return averaged(self.test.sel(reading="auc", search=f"Algorithm 1, {part}"))


def averaged(values):  # (task, run) -> [R]
    return values.mean("task").values


class Ratios:
    """Logarithms of the first singular value over another one, by layer, averaged over matrices."""

    def __init__(self, dataset):
        self.dataset, self.last = dataset, results.config_of(dataset).last

    def logs(self, version, share):  # (depth, matrix, ...)
        values = self.dataset[version]
        return np.log10(values.sel(share=0) / values.sel(share=share))

    def by_layer(self, version, share):  # [L]
        logs = self.logs(version, share)
        return logs.mean([axis for axis in logs.dims if axis != "depth"]).values

    def rise(self, where, version, share):
        """The later half less the earlier half, layer by layer [L // 2]; or the last layers less
        each of the others [L - last]."""
        logs = self.by_layer(version, share)
        half = len(logs) // 2
        if where == "deeper":
            return logs[-half:] - logs[:half]
        return logs[-self.last :].mean() - logs[: -self.last]

    def moved(self, share, matrices=MATRICES):  # [L]
        """How far another error of rounding moves the logarithm, whatever its sign."""
        moved = abs(self.logs("rounded", share) - self.logs("stored", share))
        return moved.sel(matrix=list(matrices)).mean(["matrix", "draw"]).values
