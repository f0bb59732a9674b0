"""The whitened objective ω bounds how far a subset's second moments are from the pool's, and how
differently it teaches, at any depth.

docs/theory, "The whitened gap bound".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import population
from draws import draw_rotation, draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions, moments
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap, match
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.tasks.pools import Pool
from lsa_lab.theory import matching

D, M, SIZE, DEPTH = 3, 60, 20, 12
descent = jit_numpy(lambda steps: constructions.gradient_descent(steps, D))
bounds, largest = jit_numpy(matching.descent_gap), jit_numpy(matching.least_squares_gap)
spread, linear_gradients = jit_numpy(matching.moment_spread), jit_numpy(prefix.linear_gradients)
chosen = jit_numpy(lambda rows, whiten: match(rows, SIZE, whiten=whiten).indices, static_argnums=1)
whitened_gap = jit_numpy(lambda rows, i: gap(whiten_gradients(rows, len(i)), i))
predict = jax.vmap(population.predict, (None, None, None, 0))
weights = jit_numpy(lambda params, x, y: predict(params, x, y, jnp.eye(D)))  # -> [d]


def features(tokens):  # [m, e] -> [m, e(e+1)/2]
    """Return e eᵀ of each row as a vector, off-diagonal entries once, times √2."""
    rows, columns = np.triu_indices(tokens.shape[1])
    weights = np.where(rows == columns, 1, np.sqrt(2))
    return tokens[:, rows] * tokens[:, columns] * weights


def draw(seed, copies=1, power=1):
    """A pool with λ_max(H) = 1, of ``copies`` that are orthogonal mixtures of the first."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, D)) ** power @ rng.normal(size=(D, D)) + rng.normal(size=D)
    x /= np.linalg.norm(x, 2) / np.sqrt(M)
    y = x @ rng.normal(size=D) + rng.uniform(0, 1) * rng.normal(size=M)
    turns = [np.eye(M), *(draw_rotation(rng, M) for _ in range(copies - 1))]
    pool = Pool(np.concatenate([t @ x for t in turns]), np.concatenate([t @ y for t in turns]))
    return pool, rng.normal(size=(D + 1, D)), np.full(DEPTH, rng.uniform(0.1, 0.5)), rng


def move(params, pool, indices):  # [d], of the weights that the network implies
    return weights(params, pool.x[indices], pool.y[indices]) - weights(params, pool.x, pool.y)


def moment_gap(x, indices):  # |H^{-1/2} (H_S - H) H^{-1/2}|_F
    whole, few = (rows.T @ rows / len(rows) for rows in (x, x[indices]))
    root = np.linalg.inv(np.linalg.cholesky(whole))
    return np.linalg.norm(root @ (few - whole) @ root.T)


@pytest.mark.parametrize("rule", ["whitened", "plain", "random"])
@seeds
def test_descent_of_any_depth_and_least_squares_stay_within_their_bounds(rule, seed):
    pool, checkpoints, steps, rng = draw(seed)
    indices, rows = rng.permutation(M)[:SIZE], linear_gradients(rng.normal(size=(D + 1, D)), pool)
    indices = indices if rule == "random" else chosen(rows, rule == "whitened")
    omega = whitened_gap(linear_gradients(checkpoints, pool), indices)
    limits = bounds(pool.x, pool.y, steps, omega)
    for depth in (1, 4, DEPTH):
        assert np.linalg.norm(move(descent(steps[:depth]), pool, indices)) <= limits[depth]
    assert np.isfinite(limits).all() or rule != "whitened"
    whole, few = (np.linalg.lstsq(pool.x[i], pool.y[i])[0] for i in (np.arange(M), indices))
    assert np.linalg.norm(pool.x @ (few - whole)) / M**0.5 <= largest(pool.x, pool.y, omega)


@pytest.mark.parametrize("power", [1, 3])
@seeds
def test_second_moments_agree_up_to_the_stated_share(power, seed):
    pool, checkpoints, _, rng = draw(seed, power=power)
    indices = rng.permutation(M)[:SIZE]
    omega = whitened_gap(linear_gradients(checkpoints, pool), indices)
    assert moment_gap(pool.x, indices) <= spread(pool.x) * omega * (1 + 1e-9)


def test_control_one_checkpoint_knows_less_of_the_moments():
    larger = 0
    for seed in range(20):
        pool, _, _, rng = draw(seed)
        indices = rng.permutation(M)[:SIZE]
        omega = whitened_gap(linear_gradients(rng.normal(size=(1, D)), pool), indices)
        larger += moment_gap(pool.x, indices) > spread(pool.x) * omega
    assert larger > 0


@seeds
def test_where_the_objective_is_zero_nothing_moves(seed):
    pool, checkpoints, steps, _ = draw(seed, copies=2)
    omega = whitened_gap(linear_gradients(checkpoints, pool), np.arange(M))
    assert max(omega, moment_gap(pool.x, np.arange(M))) < 1e-7
    assert max(*bounds(pool.x, pool.y, steps, 0.0), largest(pool.x, pool.y, 0.0)) == 0
    np.testing.assert_allclose(move(descent(steps), pool, np.arange(M)), 0, atol=1e-9)


@jit_numpy
def slopes(params, second_moments, x_query):  # -> [K, e, e]
    def answer(second_moment):
        return -moments.layer_maps(params, second_moment)[-1, -1, :-1] @ x_query

    return jax.vmap(jax.grad(answer))(second_moments)


@seeds
def test_all_linear_attention_stays_within_the_deviations_of_its_slopes(seed):
    pool, _, _, rng = draw(seed)
    params, indices = draw_stack(rng, 2, 1, D + 1, 0.5), rng.permutation(M)[:SIZE]
    rows, x_query = np.c_[pool.x, pool.y], rng.normal(size=D)
    whole, few = (r.T @ r / len(r) for r in (rows, rows[indices]))
    nodes, masses = np.polynomial.legendre.leggauss(5)  # exact: the slope is of degree 3 in S
    between = np.stack([whole + (1 + t) / 2 * (few - whole) for t in nodes])
    spreads = [np.std(((rows @ s) * rows).sum(1)) for s in slopes(params, between, x_query)]
    limit = whitened_gap(features(rows), indices) * (masses @ spreads) / 2
    assert abs(x_query @ move(params, pool, indices)) <= limit * (1 + 1e-9)


def test_control_at_equality_no_faster_contraction_and_no_smaller_factor_is_a_bound():
    """H = 1 and κω = 3/4, and x² and the gradients at all w are affine in one another."""
    x, y = np.array([0.5] * 4 + [2.0]), np.array([0.5] * 4 + [-3.0])
    gradients = linear_gradients(np.array([[0.0], [1.0]]), Pool(x[:, None], y))
    omega, steps = whitened_gap(gradients, np.arange(4)), np.full(DEPTH, 0.5)
    w, ends = np.zeros(2), np.zeros(3)  # of the pool and of the four
    for step in steps:
        gradients = x * (x * w[:, None] - y)
        contraction = step * np.array([1 / 4, 1, 2])  # (1 - κω) λ_min(H); λ_min(H) and twice that
        ends = (1 - contraction) * ends + step * omega * gradients[0].std()
        w = w - step * np.array([gradients[0].mean(), gradients[1, 0]])
    np.testing.assert_allclose([ends[0], bounds(x[:, None], y, steps, omega)[-1]], w[1] - w[0])
    assert w[1] - w[0] > 1.5 * ends[1:].max()
    np.testing.assert_allclose(largest(x[:, None], y, omega), 2)  # w = -1 and 1 of the four
    assert omega * (x * (y + x)).std() < 2 / 3  # without 1/(1 - κω)
