"""The whitened objective ω bounds how far a subset's second moments are from the pool's, and how
differently it teaches, at any depth.

docs/theory, "The whitened gap bound".
"""

import jax
import numpy as np
import pytest

from draws import descend, draw_stack, jit_numpy, seeds
from lsa_lab.models import moments
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap, match
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.tasks.pools import Pool
from lsa_lab.theory import matching
from population import answer

D, M, SIZE, DEPTH = 3, 60, 20, 12
bounds, largest = jit_numpy(matching.descent_gap), jit_numpy(matching.least_squares_gap)
spread, linear_gradients = jit_numpy(matching.moment_spread), jit_numpy(prefix.linear_gradients)
choose = jit_numpy(lambda rows, whiten: match(rows, SIZE, whiten=whiten).indices, static_argnums=1)
whitened_gap = jit_numpy(lambda rows, i: gap(whiten_gradients(rows, len(i)), i))


def draw(seed, power=1):
    """A pool with λ_max(H) = 1, checkpoints [d+1, d] and step sizes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, D)) ** power @ rng.normal(size=(D, D)) + rng.normal(size=D)
    x /= np.linalg.norm(x, 2) / np.sqrt(M)
    y = x @ rng.normal(size=D) + rng.uniform(0, 1) * rng.normal(size=M)
    return Pool(x, y), rng.normal(size=(D + 1, D)), np.full(DEPTH, rng.uniform(0.1, 0.5)), rng


def follow(x, y, steps):  # [L+1, d]
    return np.array([descend(x, y, steps[:count]) for count in range(len(steps) + 1)])


@seeds
def test_descent_of_any_depth_and_least_squares_stay_within_their_bounds(seed):
    pool, checkpoints, steps, rng = draw(seed)
    rows = linear_gradients(rng.normal(size=(D + 1, D)), pool)
    path, w = follow(pool.x, pool.y, steps), np.linalg.lstsq(pool.x, pool.y)[0]
    for indices in (rng.permutation(M)[:SIZE], choose(rows, False), choose(rows, True)):
        omega = whitened_gap(linear_gradients(checkpoints, pool), indices)
        few, limits = (pool.x[indices], pool.y[indices]), bounds(pool.x, pool.y, steps, omega)
        assert (np.linalg.norm(follow(*few, steps) - path, axis=1) <= limits).all()
        move = pool.x @ (np.linalg.lstsq(*few)[0] - w)
        assert np.linalg.norm(move) / M**0.5 <= largest(pool.x, pool.y, omega)
    assert np.isfinite(limits).all()  # of the whitened choice
    # Where the objective is zero nothing moves.
    assert max(*bounds(pool.x, pool.y, steps, 0.0), largest(pool.x, pool.y, 0.0)) == 0


def measure_moments(seed, num_checkpoints, power=1):
    """|H^{-1/2} (H_S - H) H^{-1/2}|_F of a random subset, and the share that bounds it."""
    pool, *_, rng = draw(seed, power=power)
    indices, checkpoints = rng.permutation(M)[:SIZE], rng.normal(size=(num_checkpoints, D))
    omega = whitened_gap(linear_gradients(checkpoints, pool), indices)
    whole, few = (rows.T @ rows / len(rows) for rows in (pool.x, pool.x[indices]))
    root = np.linalg.inv(np.linalg.cholesky(whole))
    return np.linalg.norm(root @ (few - whole) @ root.T), spread(pool.x) * omega


@pytest.mark.parametrize("power", [1, 3])
@seeds
def test_second_moments_agree_up_to_the_stated_share(power, seed):
    found, stated = measure_moments(seed, D + 1, power)
    assert found <= stated * (1 + 1e-9)


def test_control_one_checkpoint_knows_less_of_the_moments():
    assert any(np.greater(*measure_moments(seed, 1)) for seed in range(20))


@jit_numpy
def slopes(params, second_moments, x_query):  # -> [K, e, e]
    def predict(second_moment):
        return -moments.layer_maps(params, second_moment)[-1, -1, :-1] @ x_query

    return jax.vmap(jax.grad(predict))(second_moments)


@seeds
def test_all_linear_attention_stays_within_the_deviations_of_its_slopes(seed):
    pool, _, _, rng = draw(seed)
    params, indices = draw_stack(rng, 2, 1, D + 1, 0.5), rng.permutation(M)[:SIZE]
    rows, x_query = np.c_[pool.x, pool.y], rng.normal(size=D)
    squares = rows[:, :, None] * rows[:, None]
    whole, few = squares.mean(0), squares[indices].mean(0)
    nodes, masses = np.polynomial.legendre.leggauss(5)  # exact: the slope is of degree 3 in S
    between = np.stack([whole + (1 + t) / 2 * (few - whole) for t in nodes])
    spreads = np.einsum("mij,kij->km", squares, slopes(params, between, x_query)).std(1)
    limit = whitened_gap(squares.reshape(M, -1), indices) * (masses @ spreads) / 2
    before, after = (answer(params, pool.x[i], pool.y[i], x_query) for i in (np.arange(M), indices))
    assert abs(after - before) <= limit * (1 + 1e-9)


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
