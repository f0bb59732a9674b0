"""The ratios, shares and interactions that the statements of `many_shot_flow` are judged by."""

import numpy as np

from experiments.flow.many_shot_flow.statements import KINDS, LEARNERS, name_of
from lsa_lab import results
from lsa_lab.statistics import worst, worst_elsewhere


def grown(flows):  # -> the same without layers
    """A measure at the last layer over that at the first."""
    return flows.isel(layer=-1) / flows.isel(layer=0)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    dataset = dataset.transpose("run", ...)
    unrelated, duplicated = dataset.sel(correlation=0), dataset.isel(layer=-1, correlation=-1)
    most, last = unrelated.isel(count=-1), unrelated.isel(layer=-1)
    descent = most.sel(kind="descent")
    shares = last.top_share.transpose("run", "kind", "count").values
    more = most.spread.isel(layer=-1) / last.spread.sel(count=config.counts[1])
    rows = {name_of("depth", kind): grown(most.spread).sel(kind=kind).values for kind in KINDS}
    rows["turned"] = (grown(descent.from_first) / grown(descent.from_last)).values
    rows["top_share"] = worst((shares[..., 1:] / shares[..., :-1]).max(-1))
    rows |= {name_of("same_ratio", kind): more.sel(kind=kind).values for kind in LEARNERS[2:]}
    for kind in LEARNERS:
        of_kind = duplicated.sel(kind=kind)
        rows[name_of("redundancy", kind)] = of_kind.redundancy.values
        rows[name_of("explained_away", kind)] = of_kind.away.values
        rows[name_of("interactions", kind)] = of_kind.duplicates.values
    apart = (duplicated.duplicates - duplicated.others).sel(kind=list(LEARNERS))
    rows["interactions_below_others"] = worst_elsewhere(apart.transpose("run", "kind"))
    return rows
