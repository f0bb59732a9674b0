"""Effective heads of the models whose heads are their layers' own, and what mixing makes of N."""

import numpy as np

from experiments.heads.head_importance.statements import id_of
from lsa_lab import results


def samples(dataset) -> dict:  # {id: [R]}, None where there is nothing to judge
    config, rows = results.config_of(dataset), {}
    for name in dataset.merged.values:
        first, later = covered(dataset, name)
        rows |= {id_of("mixing_first", name): first, id_of("mixing_later", name): later}
    for name in dataset.model.values:
        of_model = of_one_model(dataset.sel(model=name), config)
        rows |= {id_of(statement, name): runs for statement, runs in of_model.items()}
    over_ridge = [finite(model.risk.values) / float(model.ridge) for model in models(dataset)]
    agree = [runs for model in models(dataset) for runs in agreement(model)[1:3]]
    return rows | {"found": max(over_ridge, key=np.mean), "ablations": min(agree, key=np.mean)}


def models(dataset) -> list:
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


def of_one_model(model, config) -> dict:  # {statement: [R]}
    count, typical = counts(model), counts(model, "effective_of_median")
    if not len(count):  # every run diverged
        return dict.fromkeys(("first", "first_of_median", "later", "later_that_matter"))
    heads, alive = float(model.heads.values[0]), matters(model, config)[1:]
    return {
        "first": count[:, 0] / heads,
        "first_of_median": typical[:, 0] / heads,
        "later": most(count[:, 1:]),
        "later_that_matter": most(count[:, 1:] * alive) if alive.any() else None,
    }


def depth_of(model) -> int:
    return int(np.isfinite(model.heads.values).sum())


def counts(model, kind: str = "effective") -> np.ndarray:  # [R, L]
    """Effective heads of the runs that did not diverge."""
    return finite(model[kind].transpose("run", "layer").values[:, : depth_of(model)])


def matters(model, config) -> np.ndarray:  # [L] bool
    """Layers whose rises sum to the declared share of the first layer's, on average over seeds."""
    rise = model.rise.transpose("run", "layer", "head").values[:, : depth_of(model)]
    total = np.where(np.isfinite(rise).any(-1), np.nansum(np.maximum(rise, 0), axis=-1), np.nan)
    total = np.nanmean(total, axis=0)
    return total >= config.dead * total[0]


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
