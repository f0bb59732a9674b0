"""The disparities, leads and rank correlations that the statements of `lm_flow` are judged by."""

import numpy as np

from experiments.language.lm_flow.config import FACTORS, MODES, READS
from lsa_lab.statistics import spearman


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    return {
        f"{name}_{id}": runs
        for name in dataset.task.values
        for of in (_of_depth, _of_controls, _of_single_ones)
        for id, runs in of(dataset.sel(task=name)).items()
    }


def flows(dataset, mode, read):  # of one task -> log sizes [R, n, query, L]
    """Log flows, in a shared prompt their means over rotations: each place counts once."""
    logs = dataset[mode].sel(read=read)
    if "rotation" in logs.dims:
        logs = logs.mean("rotation")
    return logs.transpose("run", "demonstration", "query", "layer").values


def per_token(dataset, read):  # -> log sizes [R, n, query, L]
    """Those of the shared prompts, over the root of the number of tokens."""
    return flows(dataset, "shared", read) - np.log(dataset.length.values)[..., None, None] / 2


def ratios(logs):  # [R, n, query, L] -> [R, pairs, query, L]
    """Log ratios of all pairs, the earlier sentence over the later: no outcome decides."""
    first, second = np.triu_indices(logs.shape[1], 1)
    return logs[:, first] - logs[:, second]


def disparities(logs):  # [R, n, query, L] -> [R, L]
    """The mean |log ratio| of a layer over that of the first."""
    sizes = np.abs(ratios(logs)).mean((1, 2))
    return sizes / sizes[:, :1]


def leads(logs):  # [R, n, query, L] -> [R, L]
    """The mean log ratio less that of the first layer, on top the larger flow of the first layer
    to the other queries: no pair is turned by the flows that are judged."""
    pairs = ratios(logs)
    first = pairs[..., 0]
    others = first.sum(2, keepdims=True) - first
    turned = pairs * np.where(others < 0, -1, 1)[..., None]
    means = turned.mean((1, 2))
    return means - means[:, :1]


def _of_depth(dataset):
    numbers = {}
    for mode in MODES:
        for read in READS:
            logs = flows(dataset, mode, read)
            numbers[f"{mode}_{read}_disparity"] = disparities(logs)[:, -1]
            numbers[f"{mode}_{read}_lead"] = leads(logs)[:, -1]
    return numbers


def _of_controls(dataset):
    numbers = {}
    for read in READS:
        numbers[f"{read}_gini"] = inequality(dataset, "shared", read)
        numbers[f"{read}_per_token"] = disparities(per_token(dataset, read))[:, -1]
        numbers[f"{read}_gini_untrained"] = inequality(dataset, "untrained", read)
        random = flows(dataset, "untrained", read)
        numbers[f"{read}_untrained"] = disparities(random)[:, -1]
    margins = flows(dataset, "shared", "margin")
    ends = ratios(margins)[..., [0, -1]]
    at_places = by_place(dataset, "margin")[:, :, -1]
    return numbers | {
        "order": (ends[..., 0] * ends[..., 1] < 0).mean((1, 2)),
        "recency": at_places[:, -1] - at_places[:, 0],
    }


def inequality(dataset, mode, read):  # of one task -> [R]
    """The mean Gini coefficient of the flows in a prompt, at the last layer over the first."""
    logs = dataset[mode].sel(read=read)
    logs = logs.transpose("run", "layer", "rotation", "query", "demonstration").values
    sizes = np.sort(np.exp(logs - logs.max(-1, keepdims=True)))
    shares, n = sizes / sizes.sum(-1, keepdims=True), sizes.shape[-1]
    gini = (shares @ np.arange(1 - n, n, 2) / n).mean((2, 3))
    return gini[:, -1] / gini[:, 0]


def by_place(dataset, read):  # -> mean log sizes [R, place, L]
    """Means over the demonstrations that stand at a place; each stands once at every one."""
    logs = dataset.shared.sel(read=read).mean("query")
    logs = logs.transpose("run", "rotation", "demonstration", "layer").values
    at = dataset.place.values
    return np.stack([logs[:, at == place].mean(1) for place in range(len(at))], axis=1)


def factors(dataset):  # -> {factor: [R, single, fresh]}
    """How similar a demonstration is to the query, how little the model knows it, and both: the
    sum of their ranks within a run."""
    relevance = dataset.relevance.sel(rows="middle").transpose("run", "single", "fresh").values
    novelty = np.broadcast_to(dataset.novelty.values[..., None], relevance.shape)
    ranks = [_ranks(values) for values in (relevance, novelty)]
    return dict(zip(FACTORS, (relevance, novelty, sum(ranks)), strict=True))


def _of_single_ones(dataset):
    worth = dataset.worth.transpose("run", "single", "fresh").values
    same = dataset.same_label.transpose("run", "single", "fresh").values.astype(bool)
    numbers = {}
    for name, values in factors(dataset).items():
        numbers[name] = _correlations(values, worth)
        numbers[f"{name}_within"] = _correlations(*(_within(x, same) for x in (values, worth)))
    means = [
        np.array([g[s == kind].mean() for g, s in zip(worth, same, strict=True)]) for kind in (1, 0)
    ]
    return numbers | {"label": means[0] - means[1]}


def _correlations(left, right):  # [R, ...] x 2 -> [R]
    rows = zip(left, right, strict=True)
    return np.array([spearman(x.ravel(), y.ravel()) for x, y in rows])


def _within(values, same):  # [R, single, fresh] x 2
    """Less the mean of those of the run whose label is the query's, or is not."""
    left = np.array(values, float)
    for run, kind in zip(left, same, strict=True):
        for which in (kind, ~kind):
            run[which] -= run[which].mean()
    return left


def _ranks(values):  # [R, ...]
    flat = values.reshape(len(values), -1)
    return flat.argsort(1).argsort(1).reshape(values.shape).astype(float)
