"""Effective heads of every model, and how models, ablations and weights compare."""

import numpy as np

from experiments.heads.head_importance.config import subjects
from experiments.heads.head_importance.statements import id_of
from lsa_lab import results


def samples(dataset) -> dict:  # {id: [R]}, None where there is nothing to judge
    config, rows = results.config_of(dataset), {}
    for name, form, _ in subjects(config):
        of_model = of_one_model(one_model(dataset, name, form), config, form)
        rows |= {id_of(statement, name, form): runs for statement, runs in of_model.items()}
    return rows | of_all_models(dataset, config)


def of_one_model(model, config, form: str) -> dict:  # {statement: [R]}
    count, typical = counts(model), counts(model, "effective_of_median")
    kinds = ("first", "first_of_median", "later", "later_that_matter")
    if not len(count):  # every run diverged
        return dict.fromkeys(kinds if form == "full" else kinds[:2])
    heads = float(model.heads.values[0])
    rows = {"first": count[:, 0] / heads, "first_of_median": typical[:, 0] / heads}
    if form == "full":
        alive = matters(model, config)[1:]
        rows["later"] = most(count[:, 1:])
        rows["later_that_matter"] = most(count[:, 1:] * alive) if alive.any() else None
    return rows


def of_all_models(dataset, config) -> dict:  # {statement: [R]}
    judged = [one_model(dataset, name, form) for name, form, _ in subjects(config)]
    over_ridge = [finite(model.risk.values) / float(model.ridge) for model in judged]
    agree = agreement(dataset.sel(ablation=["zero", "mean", "resample"]))
    rows = {
        "found": max(over_ridge, key=np.mean),
        "settled": last_change(dataset),
        "ablations": min(agree[1:], key=np.mean),
        "representative": min(first_of_representatives(dataset), key=np.mean),
        "construction": min(beyond_random(dataset.built), key=np.mean),
        "seeds": min(beyond_random(dataset.across.isel(layer=0)), key=np.mean),
    }
    sparse, dense = (one_model(dataset, name, "full") for name in ("depth 3", "dense"))
    if dense is not None:
        pairs = zip(counts(dense)[:, 0], counts(sparse)[:, 0], strict=False)
        rows["dense"] = np.array([few - many for few, many in pairs])
    return rows


def one_model(dataset, name: str, form: str):
    """The model of that name and variant, or None."""
    wanted = (dataset.family.values == name) & (dataset.form.values == form)
    return dataset.isel(model=int(np.flatnonzero(wanted)[0])) if wanted.any() else None


def full_heads(dataset, name: str) -> float:
    """h, the heads of a layer of the full model."""
    return float(one_model(dataset, name, "full").heads.values[0])


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


def last_change(dataset) -> np.ndarray:  # [R]
    """|ΔN_1| over the last part of the longest training."""
    way = dataset.isel(way=-1)
    first = way.effective_on_the_way.transpose("run", "look", "layer").values[..., 0]
    first = finite(first[:, np.isfinite(first).any(0)])
    return np.abs(first[:, -1] - first[:, -2])


def agreement(dataset) -> np.ndarray:  # [ablation, R]
    """Rank correlation of rises with those of the first ablation, averaged over layers."""
    rise = dataset.rise_ablated.transpose("ablation", "run", "layer", "head").values
    present = np.isfinite(rise).any((0, 1))  # [L, H]
    rise = rise[:, :, present.any(1)][..., present.any(0)]
    rise = rise[:, np.isfinite(rise).all((0, 2, 3))]
    ranks = rise.argsort(-1).argsort(-1) - (rise.shape[-1] - 1) / 2
    return ((ranks * ranks[:1]).sum(-1) / (ranks**2).sum(-1)).mean(-1)


def first_of_representatives(dataset) -> list[np.ndarray]:  # of [R], a model each
    """N_1 / h in the orthogonal representative."""
    first = dataset.effective_represented.sel(representative="orthogonal").isel(layer=0)
    names = [str(name) for name in dataset.again.values]
    return [finite(first.sel(again=name).values) / full_heads(dataset, name) for name in names]


def beyond_random(similarity) -> list[np.ndarray]:  # of [R], a model each
    """How much more alike trained heads are than random ones of their size."""
    more = similarity.sel(state="trained") - similarity.sel(state="random")
    return [finite(more.sel(pair=name).values) for name in more.pair.values]


def diverged(dataset) -> int:
    """Runs of all models that diverged: they have no risk."""
    models = [dataset.isel(model=i) for i in range(dataset.sizes["model"])]
    return sum(int(np.isnan(m.risk.values[: int(m.seeds)]).sum()) for m in models)


def finite(values):  # [R, ...] -> the runs that are finite
    return values[np.isfinite(values).all(tuple(range(1, values.ndim)))]
