"""One run summed up: in cells of relevance and novelty, by ranks, and by what is zero."""

import numpy as np

from experiments.flow.classes import cell_means, classes_of, fits
from lsa_lab.judging.statistics import spearman


def summary(effects: dict, count: int) -> dict:
    """The effects [M] of one run, in ``count`` classes of |s| and of |r|."""
    s, r, c, flow, reduction = (
        effects[name] for name in ("s", "r", "contribution", "flow", "reduction")
    )
    (of_s, centre_s), (of_r, centre_r) = (classes_of(np.abs(size), count) for size in (s, r))
    zeros = (of_s == 0) + 2 * (of_r == 0)  # in the order of KINDS
    inside = zeros == 0
    squares = [v[inside] / effects["zero_shot"].mean() for v in (c**2, reduction)]
    squares.insert(1, flow[inside] ** 2 / (flow[inside] ** 2).mean())
    grids = cell_means(squares, of_s[inside] - 1, of_r[inside] - 1, count)
    roots = np.sign(grids) * np.sqrt(np.abs(grids))
    typical = [np.median(np.abs(v[inside])) for v in (flow, c)]
    of_kind = [[np.median(np.abs(v[zeros == k])) for k in range(4)] for v in (flow, c)]
    return {
        "grid": grids,
        "centre": np.stack([centre_s, centre_r]),
        "r2": np.array([[fits(grid) for grid in scaled] for scaled in (grids, roots)]),
        "correlation": correlations(s, r, c, flow, reduction, count),
        "of_kind": np.array(of_kind) / np.array(typical)[:, None],
        "helps": (reduction[inside] > 0).mean(),
    }


def correlations(s, r, c, flow, reduction, count):  # [M] each -> [2, 5]
    """Rank correlations of the reduction with PREDICTORS: over all demonstrations, and of its mean
    over ``count`` classes of a predictor that is not zero."""
    rms = [np.sqrt((v**2).mean()) for v in (s, r)]
    rivals = (flow, np.abs(c), np.abs(s), np.abs(r), np.abs(s) / rms[0] + np.abs(r) / rms[1])
    single = [spearman(reduction, v) for v in rivals]
    return [single, [spearman(class_means(reduction, v, count), range(count)) for v in rivals]]


def class_means(values, sizes, count):  # [M], [M] -> [count]
    of_size, _ = classes_of(sizes, count)
    members = np.bincount(of_size, minlength=count + 1)[1:]
    if not members.all():
        raise ValueError(
            f"{(members == 0).sum()} of {count} classes are empty, for too many sizes are equal: "
            "choose fewer classes"
        )
    return np.bincount(of_size, values, count + 1)[1:] / members


def beside_bayes(effects: dict, bayes) -> dict:  # effects [M], what the Bayes rule adds [M]
    """The shares of demonstrations with s r ≠ 0 that lower the error of attention and of the Bayes
    rule; what these take off attention's, over the error without; and the rank correlation over all
    demonstrations of what each takes off with what is expected, given the prompt."""
    s, r, c, missing = (effects[name] for name in ("s", "r", "contribution", "missing"))
    inside = np.logical_and(*(np.abs(v) > 1e-12 * np.sqrt((v**2).mean()) for v in (s, r)))
    taken = missing**2 - (missing - bayes) ** 2
    lowered = [(each[inside] > 0).mean() for each in (effects["reduction"], taken)]
    return {
        "lowers": np.array(lowered),
        "taken": effects["reduction"][inside].mean() / effects["zero_shot"][inside].mean(),
        "ceiling": spearman(effects["reduction"], c * (2 * bayes - c)),
    }
