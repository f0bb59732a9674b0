"""What the panels and claims of `head_importance` read from its Dataset."""

import numpy as np


def one_model(dataset, family: str, form: str):
    """The model of that family and architecture, or None."""
    there = (dataset.family.values == family) & (dataset.form.values == form)
    return dataset.isel(model=int(np.flatnonzero(there)[0])) if there.any() else None


def depth_of(model) -> int:
    return int(np.isfinite(model.heads.values).sum())


def totals(model) -> np.ndarray:  # [R, L]
    """The sum of a layer's rises, negative ones left out."""
    rise = model.rise.transpose("run", "layer", "head").values[:, : depth_of(model)]
    return np.where(np.isfinite(rise).any(-1), np.nansum(np.maximum(rise, 0), axis=-1), np.nan)


def matters(model, settings) -> np.ndarray:  # [L] bool
    """Layers whose rises sum to the declared share of the first layer's, on average over seeds."""
    total = np.nanmean(totals(model), axis=0)
    return total >= settings.dead * total[0]


def counts(model, kind: str = "effective") -> np.ndarray:  # [R, L]
    """Effective heads of the runs that did not diverge."""
    found = model[kind].transpose("run", "layer").values[:, : depth_of(model)]
    return found[np.isfinite(found).all(1)]


def agreement(dataset) -> np.ndarray:  # [ablation, R]
    """Rank correlation of a layer's rises with those of zero ablation, averaged over layers."""
    ablated = dataset.rise_ablated.transpose("ablation", "run", "layer", "head").values
    known = np.isfinite(ablated).any((0, 1))  # [L, H]
    ablated = ablated[:, :, known.any(1)][..., known.any(0)]
    ablated = ablated[:, np.isfinite(ablated).all((0, 2, 3))]
    ranks = ablated.argsort(-1).argsort(-1) - (ablated.shape[-1] - 1) / 2
    products = (ranks * ranks[:1]).sum(-1) / (ranks**2).sum(-1)
    return products.mean(-1)


def lost(model) -> int:
    """Runs that diverged: they have no risk, though they were judged."""
    return int(np.isnan(model.risk.values[: int(model.seeds)]).sum())
