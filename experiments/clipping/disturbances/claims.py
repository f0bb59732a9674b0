"""How condition numbers go with what disturbances do, and what clipping changes of it."""

import numpy as np

from lsa_lab.statistics import spearman


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    by_kind = {kind: dataset.move.sel(kind=kind) for kind in dataset.kind.values.tolist()}
    removed = np.log10(dataset.clipped / by_kind["input"])
    mean = ("layer", "module")
    return {
        "input_spreads": rank_correlation(dataset.condition, by_kind["input"]),
        "weights_spread": rank_correlation(dataset.condition, by_kind["weights"]),
        "clipping_removes": removed.mean(mean).values,
        "size_explains": (removed - np.log10(dataset.share)).mean(mean).values,
    }


def rank_correlation(left, right) -> np.ndarray:  # (run, layer, module) twice -> [R]
    """Spearman's over the layers of a run, averaged over modules."""
    over_layers = np.vectorize(spearman, signature="(l),(l)->()", otypes=[float])
    tables = (values.transpose("run", "module", "layer").values for values in (left, right))
    return over_layers(*tables).mean(-1)
