"""What the statements of `many_shot_flow` are judged by."""

import numpy as np

from experiments.flow.many_shot_flow.config import ADDED, CLAIMS
from experiments.flow.many_shot_flow.duplicates import KINDS, LEARNERS
from lsa_lab import results
from lsa_lab.claims import about_the_median


def claims(dataset):
    settings = results.config_of(dataset)
    growth, count = settings.growth, settings.count
    numbers = {"growth": growth, "1/growth": 1 / growth, "count": count, "few": settings.counts[1]}
    numbers |= {"n": int(dataset["count"][-1]), "c": float(dataset.correlation[-1])}
    made = []
    for (name, *kinds), samples in _samples(dataset, settings).items():
        source, *texts, bounds = CLAIMS[name]
        kind = "".join(kinds)
        statement, measured, bound = (text.format(kind=kind, **numbers) for text in texts)
        criterion = f"median over runs {measured} {bound}{ADDED.get(kind, '')}"
        id = "_".join([name, *kinds]).replace(", ", "_").replace(" ", "_")
        bounds = {side: numbers.get(value, value) for side, value in bounds.items()}
        said = (source, statement, criterion, samples)
        made.append(about_the_median(f"many_shot_flow.{id}", *said, **bounds))
    return made


def _samples(dataset, settings):  # -> {(claim,) or (claim, kind): [R]}
    alone, duplicated = dataset.sel(correlation=0), dataset.isel(layer=-1, correlation=-1)
    most, last = alone.isel(count=-1), alone.isel(layer=-1)
    change = {
        name: most[name].isel(layer=-1) / most[name].isel(layer=0)
        for name in ("spread", "from_first", "from_last")
    }
    made = {("depth", kind): change["spread"].sel(kind=kind).values for kind in KINDS}
    turned = change["from_first"] / change["from_last"]
    made["turned",] = turned.sel(kind="descent").values
    shares = last.top_share.transpose("kind", "run", "count").values
    made["top_share",] = _worst((shares[..., 1:] / shares[..., :-1]).max(-1))
    ratio = most.spread.isel(layer=-1) / last.spread.sel(count=settings.counts[1])
    made |= {("same_ratio", kind): ratio.sel(kind=kind).values for kind in LEARNERS[2:]}
    for kind in LEARNERS:
        there = duplicated.sel(kind=kind)
        made["redundancy", kind] = there.redundancy.values
        made["explained_away", kind] = there.away.values
        made["interactions", kind] = there.duplicates.values
    apart = (duplicated.duplicates - duplicated.others).sel(kind=list(LEARNERS))
    made["interactions_below_others",] = _worst(apart.transpose("kind", "run").values)
    return made


def _worst(rows):
    return max(rows, key=np.median)
