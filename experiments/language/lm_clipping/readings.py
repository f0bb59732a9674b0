"""What clipping does: changes by layer, gains of searches; and how singular values fall."""

import numpy as np

from experiments.language.lm_clipping.config import DROPPED, SEARCHES, SQUARE
from lsa_lab.store import parts, results


class Numbers:
    """Readings of every data set, and what searches and their rivals gain on fresh sentences."""

    def __init__(self, dataset):
        self.main, self.fresh = parts.part(dataset), parts.part(dataset, "deep")
        self.search, self.spectra = (parts.part(dataset, name) for name in ("search", "spectra"))
        accuracy, fitted = (self.search.sel(reading=name) for name in ("accuracy", "fitted"))
        rivals = {"calibrated": self.search.calibrated, "threshold fitted": fitted.unclipped}
        base = accuracy.unclipped
        self.searched = accuracy.clipped - base  # (task, run, search)
        self.rivals = {name: (x - base).mean("task") for name, x in rivals.items()}  # [R]

    def of(self, data, **place):
        """A data set's readings of AUC, or of another reading."""
        return self.main.sel({"task": data, "reading": "auc"} | place)

    def change(self, data, **place):
        """What the edits of one part of one layer change."""
        own = self.of(data, **place)
        return own.edited - own.unclipped

    def deepest(self, data, part, reading):  # (run, rate)
        """The same of the deepest layer: on fresh sets where there are such."""
        own = self.fresh if data in self.fresh.get("task", ()) else self.main
        own = own.sel(task=data, part=part, reading=reading).isel(layer=-1)
        return own.edited - own.unclipped

    def flatness(self, data, part, reading):  # [R]
        """The change in the deepest layer, averaged over rates."""
        return self.deepest(data, part, reading).drop_sel(rate=DROPPED).mean("rate")

    def gain(self, search):  # (task, run)
        """The gain by a search, or by Algorithm 1 the mean over both parts."""
        names = [name for name in SEARCHES if name.startswith(search)]
        return self.searched.sel(search=names).mean("search")


def logs(spectra, version, share):  # (depth, matrix, ...)
    """log10 of the first singular value over the one at a share of the way to the last."""
    return np.log10(spectra[version].sel(share=0) / spectra[version].sel(share=share))


def rise(spectra, where, share, null=False):
    """Averaged over matrices: the later half less the earlier half, layer by layer [L // 2]; or the
    last layers less each of the others [L - last]. Of the ``null`` random matrices have it less."""

    def of(version):
        every = logs(spectra, version, share)
        values = every.mean([axis for axis in every.dims if axis != "depth"]).values
        half, last = len(values) // 2, results.config_of(spectra).last
        if where == "deeper":
            return values[-half:] - values[:half]
        return values[-last:].mean() - values[:-last]

    return of("stored") - (of("random") if null else 0.0)


def moved(spectra, share):  # [L]
    """How far another error of rounding moves logs of square matrices, whatever its sign."""
    each = abs(logs(spectra, "rounded", share) - logs(spectra, "stored", share))
    return each.sel(matrix=list(SQUARE)).mean(["matrix", "draw"]).values
