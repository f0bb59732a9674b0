"""|ŷ_S - ŷ_D| ≤ |Γ⁻¹ x_q| · |ḡ_S(0) - ḡ_D(0)| for Zhang et al.'s one layer.

docs/theory, "The one-layer gap bound". Sides: the network reading the subset and the whole pool;
the gap of the gradients at w = 0, which are -y x. What is matched there is Xᵀy/n, all that one
layer of gradient descent reads.
"""

import numpy as np
import pytest

import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap, match
from lsa_lab.tasks.pools import Pool

D, M, SIZE, NOISE = 3, 20, 5, 0.3
predict, linear_gradients = jit_numpy(population.predict), jit_numpy(prefix.linear_gradients)
preconditioned = jit_numpy(constructions.preconditioned)
gap_of = jit_numpy(gap)
chosen = jit_numpy(lambda rows, away: match(rows, SIZE, reverse=away).indices, static_argnums=1)


def draw(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(D, D)) / 2
    covariance = root @ root.T + np.eye(D)
    x = rng.normal(size=(M, D)) @ np.linalg.cholesky(covariance).T
    y = x @ rng.normal(size=D) + NOISE * rng.normal(size=M)
    return covariance, Pool(x, y), rng.normal(size=D)


@jit_numpy
def zhangs_layer(covariance):
    return constructions.one_step_optimum(covariance, SIZE, NOISE**2)


def step(covariance):
    """Γ⁻¹, Γ = (1 + 1/n) Λ + ((tr Λ + σ²)/n) I."""
    shrink = (np.trace(covariance) + NOISE**2) / SIZE
    return np.linalg.inv((1 + 1 / SIZE) * covariance + shrink * np.eye(D))


def move(params, pool, indices, x_query):
    """|ŷ of the chosen - ŷ of the pool|."""
    chosen = predict(params, pool.x[indices], pool.y[indices], x_query)
    return abs(chosen - predict(params, pool.x, pool.y, x_query))


def gradients_at_zero(pool):
    return linear_gradients(np.zeros((1, D)), pool)


@pytest.mark.parametrize("choice", ["matched", "random", "mismatched"])
@seeds
def test_the_gap_of_gradients_bounds_the_gap_of_predictions(choice, seed):
    covariance, pool, x_query = draw(seed)
    gradients, indices = gradients_at_zero(pool), np.arange(SIZE)
    if choice != "random":
        indices = chosen(gradients, choice == "mismatched")
    bound = np.linalg.norm(step(covariance) @ x_query) * gap_of(gradients, indices)
    moved = move(zhangs_layer(covariance), pool, indices, x_query)
    assert moved <= bound * (1 + 1e-10) + 1e-12


@seeds
def test_some_query_attains_the_bound(seed):
    covariance, pool, _ = draw(seed)
    gradients = gradients_at_zero(pool)
    difference = gradients[:SIZE].mean(0) - gradients.mean(0)
    x_query = np.linalg.solve(step(covariance), difference)
    moved = move(zhangs_layer(covariance), pool, np.arange(SIZE), x_query)
    np.testing.assert_allclose(moved, difference @ difference, rtol=1e-10)


def test_control_two_layers_are_not_bound_by_the_gradients_at_zero():
    excess = []
    for seed in range(10):
        covariance, pool, x_query = draw(seed)
        # Scale demonstrations by c and labels by 1/c: Xᵀy stays, so nothing moves at w = 0.
        twice = Pool(np.r_[pool.x, 2 * pool.x], np.r_[pool.y, pool.y / 2])
        gradients, indices = gradients_at_zero(twice), np.arange(M)
        assert gap_of(gradients, indices) < 1e-12
        preconditioner = step(covariance)[None]
        deep = preconditioned(np.repeat(preconditioner, 2, axis=0))
        assert move(zhangs_layer(covariance), twice, indices, x_query) < 1e-10
        excess.append(move(deep, twice, indices, x_query))
    assert np.median(excess) > 0.05
