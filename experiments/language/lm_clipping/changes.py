"""What clipping does to accuracy, AUC and cross-entropy on one data set."""

from functools import cached_property

import numpy as np

from experiments.language.lm_clipping.config import DROPPED
from lsa_lab.judging.statistics import best_elsewhere, worst_elsewhere
from lsa_lab.store import results


def changes(dataset):
    """Clipped less unclipped: (run, reading, layer, part, rate)."""
    return dataset.edited - dataset.unclipped


def flat(cells) -> np.ndarray:  # [R, C]
    """A row of all choices for each run."""
    table = cells.transpose("run", ...).values
    return table.reshape(len(table), -1)


class Changes:
    """A data set's changes by clipping, those in its shallow layer and in its deep one."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.change, self.high = changes(dataset), max(self.config.rates)
        self.clipped = self.change.sel(rate=list(self.config.rates))
        self.first, self.last = dataset.end.values
        self.shallow, self.deep = (
            self.clipped.sel(layer=end, drop=True) for end in (self.first, self.last)
        )

    def strongest(self, reading, part):
        return dict(reading=reading, part=part, rate=self.high)

    def flatness(self, part):  # [R]
        return self.deep.sel(reading="auc", part=part).mean("rate").values

    def collapse(self, part):  # [R]
        return self.dataset.edited.sel(layer=self.first, **self.strongest("auc", part)).values

    def tolerance(self, part):  # [R]
        return (self.deep - self.shallow).sel(**self.strongest("auc", part)).values

    def entropy(self, part):  # [R]
        return self.deep.sel(**self.strongest("entropy", part)).values

    def dropped(self, reading, part):  # [R]
        place = dict(part=part, rate=DROPPED, reading=reading, layer=self.last)
        return self.change.sel(place).values

    def drop(self, part):  # [R]
        """The part dropped, less clipped."""
        return self.dropped("auc", part) - self.deep.sel(**self.strongest("auc", part)).values

    def accuracy(self):  # [R]
        return self.deep.sel(reading="accuracy").mean(("part", "rate")).values

    def gain(self, reading):  # [R]
        """The change by the edit that is best for the other runs."""
        return best_elsewhere(flat(self.clipped.sel(reading=reading)))

    @cached_property
    def rivals(self):  # (run, rival_of)
        return self.dataset.rival - self.dataset.unclipped.sel(reading="accuracy")

    def over_edit(self, rival):  # [R]
        return self.rivals.sel(rival_of=rival).values - self.gain("accuracy")

    @cached_property
    def matrices(self):  # (run, matrix)
        """Changes of AUC by clipping one matrix of the deep layer."""
        edited, unclipped = self.dataset.matrix_edited, self.dataset.unclipped
        return (edited - unclipped).sel(reading="auc", end=self.last)

    def worst_matrix(self):  # [R]
        return worst_elsewhere(flat(self.matrices), lambda column: abs(np.mean(column)))

    def few_shots(self):  # [R]
        """The AUC lost in the shallow layer with most demonstrations less that with fewest."""
        lost = self.dataset.shots_unclipped - self.dataset.shots_edited
        return self._most_less_fewest(lost.sel(reading="auc", end=self.first).mean("part"))

    def more_shots(self):  # [R]
        """The AUC of the unclipped model with most demonstrations less that with fewest."""
        return self._most_less_fewest(self.dataset.shots_unclipped.sel(reading="auc"))

    def _most_less_fewest(self, values):
        shots = self.dataset.shots.values
        return (values.sel(shots=max(shots)) - values.sel(shots=min(shots))).values
