"""Flows of one data set by layer, how unequal they are, and what a demonstration is worth."""

import numpy as np

from experiments.language.lm_flow.config import FACTORS
from lsa_lab.judging.statistics import spearman


def flows(dataset, mode, read):  # of one task -> log sizes [R, n, query, L]
    """Log flows, in a shared prompt their means over rotations: each place counts once. Those
    "per_token" are of shared prompts, over the root of the number of tokens."""
    if mode == "per_token":
        return flows(dataset, "shared", read) - np.log(dataset.length.values)[..., None, None] / 2
    logs = dataset[mode].sel(read=read)
    if "rotation" in logs.dims:
        logs = logs.mean("rotation")
    return logs.transpose("run", "demonstration", "query", "layer").values


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


def disparity(dataset, mode, read):  # of one task -> [R]
    """The disparity at the last layer over that at the first."""
    return disparities(flows(dataset, mode, read))[:, -1]


def turns(dataset):  # of one task -> [R]
    """The share of pairs whose flows of the margin change their order from first to last layer."""
    ends = ratios(flows(dataset, "shared", "margin"))[..., [0, -1]]
    return (ends[..., 0] * ends[..., 1] < 0).mean((1, 2))


def recency(dataset):  # of one task -> [R]
    """The log ratio of the flows of the margin from the last place and the first, at the last
    layer."""
    means = place_means(dataset, "margin")[:, :, -1]
    return means[:, -1] - means[:, 0]


def inequality(dataset, mode, read):  # of one task -> [R]
    """The mean Gini coefficient of the flows in a prompt, at the last layer over the first."""
    logs = dataset[mode].sel(read=read)
    logs = logs.transpose("run", "layer", "rotation", "query", "demonstration").values
    sizes = np.sort(np.exp(logs - logs.max(-1, keepdims=True)))
    shares, n = sizes / sizes.sum(-1, keepdims=True), sizes.shape[-1]
    gini = (shares @ np.arange(1 - n, n, 2) / n).mean((2, 3))
    return gini[:, -1] / gini[:, 0]


def place_means(dataset, read):  # -> mean log sizes [R, place, L]
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


def worths(dataset):  # -> [R, single, fresh]
    """What each demonstration adds to the log-probability of the label of each fresh sentence."""
    return dataset.worth.transpose("run", "single", "fresh").values


def same_labels(dataset):  # -> [R, single, fresh]
    """Whether the demonstration has the label of the sentence."""
    return dataset.same_label.transpose("run", "single", "fresh").values.astype(bool)


def label_effect(dataset):  # -> [R]
    """The mean worth of those that have the query's label less that of the others."""
    worth, same = worths(dataset), same_labels(dataset)
    means = [
        np.array([g[s == kind].mean() for g, s in zip(worth, same, strict=True)]) for kind in (1, 0)
    ]
    return means[0] - means[1]


def correlations(left, right):  # [R, ...] x 2 -> [R]
    rows = zip(left, right, strict=True)
    return np.array([spearman(x.ravel(), y.ravel()) for x, y in rows])


def worth_correlations(dataset, factor, labels):  # -> [R]
    """The rank correlation of a factor and worth; labels "apart", each less its mean over them."""
    values = (factors(dataset)[factor], worths(dataset))
    if labels == "apart":
        values = [less_label_means(each, same_labels(dataset)) for each in values]
    return correlations(*values)


def less_label_means(values, same):  # [R, single, fresh] x 2
    """Less the mean of those of the run whose label is the query's, or is not."""
    left = np.array(values, float)
    for run, kind in zip(left, same, strict=True):
        for which in (kind, ~kind):
            run[which] -= run[which].mean()
    return left


def _ranks(values):  # [R, ...]
    flat = values.reshape(len(values), -1)
    return flat.argsort(1).argsort(1).reshape(values.shape).astype(float)
