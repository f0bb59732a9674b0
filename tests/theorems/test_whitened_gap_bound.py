"""The whitened objective bounds how differently a subset teaches, at any depth.

docs/theory, "The whitened gap bound". Sides: forward passes over the subset and over the pool,
least squares; ω times standard deviations of the pool (theory.matching).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import on_host, seeds
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import certify, match, whitened
from lsa_lab.selection.rivals import moment_features
from lsa_lab.tasks import pools
from lsa_lab.theory import matching

D, M, SIZE, DEPTH = 3, 60, 20, 12
descent = on_host(lambda steps: constructions.gradient_descent(steps, D))
bounds, largest = on_host(matching.descent_gap), on_host(matching.least_squares_gap)
linear_gradients = on_host(prefix.linear_gradients)


def draw(seed):
    """A pool in units of its own, checkpoints in general position, and how to choose a subset."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)
    x /= np.linalg.norm(x, 2) / np.sqrt(M)  # λ_max(H) = 1
    y = x @ rng.normal(size=D) + rng.uniform(0, 1) * rng.normal(size=M)
    checkpoints = rng.normal(size=(D + 1, D))
    steps = np.full(DEPTH, rng.uniform(0.1, 0.5))
    return pools.Pool(x, y), checkpoints, steps, rng


def choose(pool, rule, rng):
    if rule == "random":
        return rng.permutation(M)[:SIZE]
    gradients = linear_gradients(rng.normal(size=(D + 1, D)), pool)
    return np.asarray(match(gradients, SIZE, whiten=rule == "whitened").indices)


@on_host
def objective(points, pool, indices):
    return certify(whitened(prefix.linear_gradients(points, pool), len(indices)), indices).objective


@on_host
def weights(params, x, y):  # -> [d]
    return jax.vmap(population.predict, (None, None, None, 0))(params, x, y, jnp.eye(D))


@on_host
def slopes(params, second_moments, x_query):  # -> [K, e, e]
    def answer(second_moment):
        return -moments.layer_maps(params, second_moment)[-1, -1, :-1] @ x_query

    return jax.vmap(jax.grad(answer))(second_moments)


def moved(steps, pool, indices):
    params = descent(steps)
    chosen = weights(params, pool.x[indices], pool.y[indices])
    return np.linalg.norm(chosen - weights(params, pool.x, pool.y))


@on_host
def whitened_moments(pool, indices):
    return certify(whitened(moment_features(pools.tokens(pool)), SIZE), indices).objective


@pytest.mark.parametrize("rule", ["whitened", "plain", "random"])
@seeds
def test_descent_of_any_depth_and_least_squares_stay_within_their_bounds(rule, seed):
    pool, checkpoints, steps, rng = draw(seed)
    indices = choose(pool, rule, rng)
    omega = objective(checkpoints, pool, indices)
    limits = bounds(pool.x, pool.y, steps, omega)
    for depth in (1, 4, DEPTH):
        assert moved(steps[:depth], pool, indices) <= limits[depth]
    assert np.isfinite(limits).all() or rule != "whitened"
    whole, few = (np.linalg.lstsq(pool.x[i], pool.y[i])[0] for i in (np.arange(M), indices))
    distance = np.linalg.norm(pool.x @ (few - whole)) / np.sqrt(M)
    assert distance <= largest(pool.x, pool.y, omega)


@seeds
def test_all_linear_attention_stays_within_the_deviations_of_its_slopes(seed):
    pool, _, _, rng = draw(seed)
    params = linear_attention.Params(*(0.5 * rng.normal(size=(2, 2, 1, D + 1, D + 1))))
    indices, rows = rng.permutation(M)[:SIZE], pools.tokens(pool)
    x_query = rng.normal(size=D)
    whole, few = (r.T @ r / len(r) for r in (rows, rows[indices]))
    nodes, masses = np.polynomial.legendre.leggauss(5)  # exact: the slope is of degree 3 in S
    between = np.stack([whole + (1 + t) / 2 * (few - whole) for t in nodes])
    spreads = [np.std(((rows @ s) * rows).sum(1)) for s in slopes(params, between, x_query)]
    chosen = weights(params, pool.x[indices], pool.y[indices])
    gap = x_query @ (chosen - weights(params, pool.x, pool.y))
    assert abs(gap) <= whitened_moments(pool, indices) * (masses @ spreads) / 2 * (1 + 1e-9)


def test_control_a_single_checkpoint_bounds_nothing():
    """Scale x by c and y by 1/c: at w = 0 nothing moves, and the pool's other half is unlike."""
    pool, _, steps, _ = draw(0)
    twice = pools.Pool(np.r_[pool.x, pool.x / 2], np.r_[pool.y, 2 * pool.y])
    indices = np.arange(M)
    omega = objective(np.zeros((1, D)), twice, indices)
    assert moved(steps, twice, indices) > 100 * bounds(twice.x, twice.y, steps, omega)[DEPTH]
