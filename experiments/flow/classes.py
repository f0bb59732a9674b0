"""Classes of relevance and of novelty, and the forms that means over their cells have."""

import numpy as np


def classes_of(sizes, count):  # [M] -> [M], [count]
    """0 for zeros, then the quantile class of the others; and the root mean square of each."""
    positive = sizes > 1e-12 * np.sqrt((sizes**2).mean())
    edges = np.quantile(sizes[positive], np.linspace(0, 1, count + 1)[1:-1])
    of_size = np.where(positive, 1 + np.searchsorted(edges, sizes), 0)
    numbers = np.maximum(np.bincount(of_size, minlength=count + 1), 1)
    squares = np.bincount(of_size, sizes**2, count + 1) / numbers
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
