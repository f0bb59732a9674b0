"""Effective heads out of a result: of each run and layer, and over mixings."""

import numpy as np

from lsa_lab.store import results

DEAD = 0.05  # sum of a later layer's rises over the first's: below, it does not matter


def own_models(dataset) -> list:
    """The Dataset of each model whose heads are its layers' own."""
    return [dataset.sel(model=name) for name in dataset.model.values]


def over_mixings(dataset, name: str) -> np.ndarray:  # [R, L, ENDS]
    values = dataset.over_mixings.sel(merged=name)
    values = values.transpose("mixed_run", "mixed_layer", "end").values
    values = values[:, np.isfinite(values).any((0, 2))]
    return finite(values)


def covered(dataset, name: str) -> tuple[np.ndarray, np.ndarray]:  # [R] twice
    """The share of [1, h] that N_l covers over mixings: of layer 1, and of the later layer of which
    mixing covers least."""
    shares = shares_covered(dataset, name)
    later = shares[:, 1:]
    return shares[:, 0], later[:, later.mean(0).argmin()]


def shares_covered(dataset, name: str) -> np.ndarray:  # [R, L]
    values, h = over_mixings(dataset, name), most_heads(dataset, name)
    return (values[..., 2] - values[..., 0]) / (h - 1)


def most_heads(dataset, name: str) -> int:
    """h, the heads of a layer of a model."""
    return dict(results.config_of(dataset).models)[name].architecture.heads


def first_count(dataset, name: str, kind: str = "effective"):  # [R], None if all runs diverged
    """N_1 / h."""
    model = dataset.sel(model=name)
    return counts(model, kind)[:, 0] / heads_of(model) if len(counts(model)) else None


def later_count(dataset, name: str):  # [R], None if all runs diverged
    """N_l of the later layer where it is most."""
    count = counts(dataset.sel(model=name))
    return most(count[:, 1:]) if len(count) else None


def later_count_that_matters(dataset, name: str):  # [R], None where there is nothing to judge
    model = dataset.sel(model=name)
    count = counts(model)
    if not len(count) or not matters(model)[1:].any():
        return None
    return most(count[:, 1:] * matters(model)[1:])


def over_ridge(model) -> np.ndarray:  # [R]
    return finite(model.risk.values) / float(model.ridge)


def heads_of(model) -> float:
    """The heads of a model's first layer."""
    return float(model.heads.values[0])


def depth_of(model) -> int:
    return int(np.isfinite(model.heads.values).sum())


def counts(model, kind: str = "effective") -> np.ndarray:  # [R, L]
    """Effective heads of the runs that did not diverge."""
    return finite(model[kind].transpose("run", "layer").values[:, : depth_of(model)])


def matters(model) -> np.ndarray:  # [L] bool
    """Layers whose rises sum to the declared share of the first layer's, on average over seeds."""
    rise = model.rise.transpose("run", "layer", "head").values[:, : depth_of(model)]
    total = np.where(np.isfinite(rise).any(-1), np.nansum(np.maximum(rise, 0), axis=-1), np.nan)
    total = np.nanmean(total, axis=0)
    return total >= DEAD * total[0]


def most(count):  # [R, L] -> [R]
    """The layer with the most effective heads on average."""
    return count[:, count.mean(0).argmax()]


def agreement(model) -> np.ndarray:  # [ablation, R]
    """Rank correlation of rises with those of the first ablation, averaged over layers."""
    rise = model.rise_ablated.transpose("ablation", "run", "layer", "head").values
    present = np.isfinite(rise).any((0, 1))  # [L, H]
    rise = rise[:, :, present.any(1)][..., present.any(0)]
    rise = rise[:, np.isfinite(rise).all((0, 2, 3))]
    ranks = rise.argsort(-1).argsort(-1) - (rise.shape[-1] - 1) / 2
    return ((ranks * ranks[:1]).sum(-1) / (ranks**2).sum(-1)).mean(-1)


def finite(values):  # [R, ...] -> the runs that are finite
    return values[np.isfinite(values).all(tuple(range(1, values.ndim)))]
