"""What the statements of `matching_is_exact` are judged by."""

import numpy as np

from lsa_lab import results
from lsa_lab.claims import about_the_median


def worst(values, sign=1.0):  # [..., run] -> [R], where the median over runs is largest
    flat = values.transpose("run", ...).values.reshape(values.sizes["run"], -1)
    return flat[:, np.argmax(sign * np.median(flat, axis=0))]


def claims(dataset):
    settings = results.config_of(dataset)
    knee, most = settings.d + 1, settings.most
    linear, names = dataset.linear, dataset.model.values
    descent = [name for name in names if name.startswith("descent")]
    deep = [f"descent, {depth}" for depth in settings.depths if depth > 1]
    other = [name for name in names if not name.startswith("descent")]
    proxy = linear.sel(path="proxy")
    own = linear.sel(path="descent", square="free")
    own_at = np.stack(
        [own.sel(model=f"descent, {depth}", matched=min(depth, knee)).values
         for depth in settings.depths]
    )  # fmt: skip
    before = np.stack(
        [own.sel(model=f"descent, {depth}", matched=min(depth, knee) - 1).values
         for depth in settings.depths]
    )  # fmt: skip
    own_worst = own_at[np.argmax(np.median(own_at, axis=1))]
    own_before = before[np.argmin(np.median(before, axis=1))]
    subset = dataset.subset[:, knee - 1] / dataset.subset[:, most:].median("pick")
    here, a3 = "derived here", "derived here; A3 (CLG)"
    gap = "median over runs of the gap at the"
    rows = (
        ("knee", a3, "d + 1 matched checkpoints make any depth of descent answer as for the pool",
         f"{gap} worst depth",
         worst(proxy.sel(model=descent, matched=knee, square="free")), "at_most", "exact"),
        ("before_the_knee", a3, "d checkpoints do not, behind more than one layer",
         f"{gap} best depth above one",
         worst(proxy.sel(model=deep, matched=knee - 1, square="free"), -1.0),
         "at_least", "clear"),
        ("own_path", here, "On its own path descent of L layers needs only min(L, d + 1)",
         f"{gap} worst depth", own_worst, "at_most", "exact"),
        ("own_path_before", here, "One checkpoint less of its own path is clearly not enough",
         f"{gap} best depth (reworded after a first run)", own_before, "at_least", "clear"),
        ("any_stack", here, "With y² matched too, no random linear stack sees a change",
         f"{gap} worst stack",
         worst(proxy.sel(model=other, matched=knee, square="matched")), "at_most", "exact"),
        ("square", here, "No gradient knows of y²: without it random stacks see a change",
         f"{gap} best random stack",
         worst(proxy.sel(model=other, matched=knee, square="free"),
               -1.0), "at_least", "clear"),
        ("softmax", here, "Softmax departs: equal moments are not enough",
         f"{gap} better of random and trained weights",
         worst(dataset.softmax.sel(matched=knee), -1.0), "at_least", "departs"),
        ("bound", here, "One layer's gap is at most |Γ⁻¹x| times the gap of mean gradients at 0",
         "median over runs of the gap over its bound, at the worst subset and query",
         dataset.tight.max("pick").values, "at_most", "bound"),
        ("subset", a3, "A subset chosen to match d + 1 checkpoints comes near to its pool",
         f"median over runs of the gap of {max(settings.depths)} layers over that of a random one",
         subset.values, "at_most", "subset"),
    )  # fmt: skip
    return [
        about_the_median(
            f"matching_is_exact.{name}",
            source,
            statement,
            f"{criterion} {'<=' if side == 'at_most' else '>='} {getattr(settings, limit):g}",
            samples,
            **{side: getattr(settings, limit)},
        )
        for name, source, statement, criterion, samples, side, limit in rows
    ]
