"""Changes of accuracy by clipping, layer by layer, in a result of `label_clipping`."""

from functools import cached_property

import numpy as np

from experiments.clipping.label_clipping.config import DROPPED
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformers import spec_of
from lsa_lab.store import results


def shots_of(spec) -> dict[str, int]:
    """The fewest and the most demonstrations."""
    lengths = spec.task.lengths
    return {"few": min(lengths), "trained": max(lengths)}


class Clipped:
    """A result's changes of accuracy, and those after clipping its first and its last layers."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.spec = spec_of(self.config)
        self.shots = shots_of(self.spec)
        self.few, self.n = (dataset.sel(shots=count) for count in self.shots.values())

    @cached_property
    def change(self):  # (run, shots, layer, part, rate)
        return self.dataset.accuracy - self.dataset.unclipped_accuracy

    @cached_property
    def ends(self):  # two of (run, shots, part): first layers, last layers
        """Averaged over the drastic rates; dropping is not among them. One layer at a time."""
        drastic = self.change.sel(rate=slice(self.config.high, DROPPED - 1e-9)).mean("rate")
        return shallow_and_deep(drastic, self.config.ends)

    @cached_property
    def sharp(self):  # two of (run, shots, part)
        """Accuracies with the first layers clipped the most, and with the last ones."""
        rate = max(self.config.rates)
        return shallow_and_deep(self.dataset.accuracy.sel(rate=rate), self.config.ends)

    @cached_property
    def lost(self):  # (run, shots, part)
        """What clipping the first layers takes, as a share of what accuracy is above .5."""
        above = (self.dataset.unclipped_accuracy - 0.5).clip(min=1 / self.config.prompts)
        return -self.ends[0] / above

    def pick(self, values, part, shots="trained"):  # [R]
        return values.sel(part=part, shots=self.shots[shots]).values

    def best(self, shots):  # [R]
        return gains_by_others(self.change.sel(shots=self.shots[shots]))


def gains_by_others(changes):  # (run, layer, part, rate) -> [R]
    """The change of each run under the edit that is best, on average, for all the other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmax(1)]
