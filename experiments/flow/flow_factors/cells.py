"""One run summed up: in cells of relevance and novelty, by ranks, and by what is zero."""

import numpy as np

from lsa_lab.statistics import spearman


def summary(effects: dict, count: int) -> dict:
    """The effects [M] of one run and one step size, in ``count`` classes of |s| and of |r|."""
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
        "share": np.bincount(zeros, minlength=4) / len(zeros),
        "helps": (reduction[inside] > 0).mean(),
        "gain": reduction.mean() / effects["zero_shot"].mean(),
    }


def classes_of(sizes, count):  # [M] -> [M], [count]
    """0 for zeros, then the quantile class of the others; and the root mean square of each."""
    positive = sizes > 1e-12 * np.sqrt((sizes**2).mean())
    edges = np.quantile(sizes[positive], np.linspace(0, 1, count + 1)[1:-1])
    of_size = np.where(positive, 1 + np.searchsorted(edges, sizes), 0)
    squares = np.bincount(of_size, sizes**2, count + 1) / np.bincount(of_size, None, count + 1)
    return of_size, np.sqrt(squares[1:])


def cell_means(values, rows, columns, count):  # Q of [M], [M], [M] -> [Q, count, count]
    cells = rows * count + columns
    numbers = np.bincount(cells, minlength=count**2)
    means = np.stack([np.bincount(cells, v, count**2) / numbers for v in values])
    return means.reshape(len(values), count, count)


def fits(grid):  # [K, K] -> [2]
    """The share of the grid's variance that the best f(s)·g(r), and f(s) + g(r), explain.

    Any f and g on the K classes: 2K - 1 free numbers in both forms.
    """
    u, sizes, v = np.linalg.svd(grid)
    product = sizes[0] * np.outer(u[:, 0], v[0])
    total = grid.mean(0)[None] + grid.mean(1)[:, None] - grid.mean()
    return [1 - ((grid - fit) ** 2).sum() / grid.var() / grid.size for fit in (product, total)]


def correlations(s, r, c, flow, reduction, count):  # [M] each -> [2, 5]
    """Rank correlations of the reduction with PREDICTORS: over all demonstrations, and of its mean
    over ``count`` classes of a predictor that is not zero."""
    rms = [np.sqrt((v**2).mean()) for v in (s, r)]
    rivals = (flow, np.abs(c), np.abs(s), np.abs(r), np.abs(s) / rms[0] + np.abs(r) / rms[1])
    single = [spearman(reduction, v) for v in rivals]
    return [single, [spearman(class_means(reduction, v, count), range(count)) for v in rivals]]


def class_means(values, sizes, count):  # [M], [M] -> [count]
    of_size, _ = classes_of(sizes, count)
    return (np.bincount(of_size, values, count + 1) / np.bincount(of_size, None, count + 1))[1:]
