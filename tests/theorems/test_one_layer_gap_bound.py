"""|ŷ_S - ŷ_D| ≤ |Γ⁻¹ x_q| · |ḡ_S(0) - ḡ_D(0)| for Zhang et al.'s one layer.

What is matched at w = 0, where gradients are -y x, is Xᵀy/n, all that one layer of descent reads.
docs/theory, "The one-layer gap bound".
"""

import numpy as np

from draws import jit_numpy, preconditioned, seeds
from lsa_lab.models import constructions
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.pools import Pool
from population import answer

D, M, SIZE, NOISE = 3, 20, 5, 0.3
optimum = jit_numpy(lambda covariance: constructions.one_step_optimum(covariance, SIZE, NOISE**2))
choose = jit_numpy(lambda rows: match(rows, SIZE).indices)


def draw(seed):  # Γ⁻¹, the layer, a pool and a query
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(D, D)) / 2
    covariance = root @ root.T + np.eye(D)
    x = rng.normal(size=(M, D)) @ np.linalg.cholesky(covariance).T
    y = x @ rng.normal(size=D) + NOISE * rng.normal(size=M)
    shrink = (np.trace(covariance) + NOISE**2) / SIZE
    step = np.linalg.inv((1 + 1 / SIZE) * covariance + shrink * np.eye(D))
    return step, optimum(covariance), Pool(x, y), rng.normal(size=D)


def move(params, pool, indices, x_query):  # |ŷ of the subset - ŷ of the pool|
    part, whole = (answer(params, pool.x[i], pool.y[i], x_query) for i in (indices, slice(None)))
    return abs(part - whole)


def difference(pool, indices):  # of mean gradients at 0
    gradients = -pool.y[:, None] * pool.x
    return gradients[indices].mean(0) - gradients.mean(0)


@seeds
def test_the_gap_of_gradients_bounds_the_gap_of_predictions_and_some_query_attains_it(seed):
    step, layer, pool, x_query = draw(seed)
    for indices in (np.arange(SIZE), choose(-pool.y[:, None] * pool.x)):
        gap = difference(pool, indices)
        bound = np.linalg.norm(step @ x_query) * np.linalg.norm(gap)
        assert move(layer, pool, indices, x_query) <= bound * (1 + 1e-10) + 1e-12
        worst = move(layer, pool, indices, np.linalg.solve(step, gap))
        np.testing.assert_allclose(worst, gap @ gap, rtol=1e-10, atol=1e-14)
    if seed == 0:  # Control: with two layers Xᵀy is not all, which demonstrations of (2x, y/2) keep
        twice = Pool(np.r_[pool.x, 2 * pool.x], np.r_[pool.y, pool.y / 2])
        assert np.linalg.norm(difference(twice, np.arange(M))) < 1e-12
        assert move(layer, twice, np.arange(M), x_query) < 1e-10
        deep = preconditioned(np.repeat(step[None], 2, axis=0))
        assert move(deep, twice, np.arange(M), x_query) > 0.05
