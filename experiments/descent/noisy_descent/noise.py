"""The noise of updates at the length of training, for each run."""

import numpy as np

from experiments.descent.specs import STACK, spec_of
from lsa_lab.store import results


class Noise:
    """A result's noise, and its risks, at the length of training."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.n = max(spec_of(results.config_of(dataset), STACK).task.lengths)
        self.linear, self.softmax = dataset.sel(shots=self.n), dataset.sel(state="trained")

    def shape(self, stack, name, reading="query"):  # [R]
        """The excess kurtosis, or the share that passes the test, of trained stacks."""
        if stack == "softmax":
            return self.softmax[f"softmax_{name}"].mean("softmax_layer").values
        return layer_mean(self.linear[name].sel(state="trained", reading=reading))

    def gained(self, name, **place):  # [R]
        """Trained less untrained."""
        values = self.linear[name].sel(**place)
        return layer_mean(values.sel(state="trained") - values.sel(state="untrained"))

    def risks(self, path, name="risk"):  # [R]
        return self.dataset[name].sel(path=path).values

    def ratio(self, path, base="model", name="risk"):  # [R]
        return self.risks(path, name) / self.risks(base, name)

    def share_by_shots(self):  # [R]
        share = self.dataset["share"].sel(state="trained").mean("layer")
        return (share.sel(shots=2 * self.n) / share.sel(shots=self.n)).values


def layer_mean(values) -> np.ndarray:  # (run, layer) -> [R]
    return values.mean("layer").values
