"""How condition numbers lie over the layers, and what they say about clipping."""

import numpy as np

from experiments.clipping.layer_ends import shallow_and_deep
from lsa_lab import results
from lsa_lab.statistics import spearman


def tilt(logs, ends):  # (run, layer, ...) -> (run, ...)
    """Deep less shallow."""
    shallow, deep = shallow_and_deep(logs, ends)
    return deep - shallow


def rank_correlation(left, right):  # (run, layer, module) twice -> [R]
    """Spearman's over the layers of a run, averaged over modules."""
    over_layers = np.vectorize(spearman, signature="(l),(l)->()", otypes=[float])
    tables = (values.transpose("run", "module", "layer").values for values in (left, right))
    return over_layers(*tables).mean(-1)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    ends = results.config_of(dataset).ends
    final, first = dataset.isel(steps=-1), dataset.isel(steps=0)
    after, before = np.log10(final.condition), np.log10(first.condition)
    trained, random = (tilt(logs, ends).mean("module") for logs in (after, before))
    last = after.isel(layer=-1) - after.isel(layer=slice(-1)).mean("layer")
    shrunk = np.log10(final.stable_rank / first.stable_rank)
    return {
        "deep_is_larger": trained.values,
        "last_is_largest": last.mean("module").values,
        "random_is_level": random.values,
        "training_tilts": (trained - random).values,
        "training_raises": (after - before).mean(("layer", "module")).values,
        "stable_rank_falls": shrunk.mean(("layer", "module")).values,
        "condition_tells": rank_correlation(after, final.ratio),
        "stable_rank_tells": rank_correlation(final.stable_rank, final.ratio),
    }
