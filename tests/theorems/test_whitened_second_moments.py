"""The whitened objective bounds how far the subset's second moments are from the pool's.

docs/theory, "The whitened gap bound", (1) and (5). Sides: H_S in units of H, answers of descent;
κω, and bounds that are 0 with ω.
"""

import numpy as np

import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.selection import prefix
from lsa_lab.selection.gradient_matching import gap
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.tasks import pools
from lsa_lab.theory import matching

D, M, SIZE, STEPS = 3, 60, 20, np.full(6, 0.3)
linear_gradients, spread = jit_numpy(prefix.linear_gradients), jit_numpy(matching.moment_spread)
bounds, largest = jit_numpy(matching.descent_gap), jit_numpy(matching.least_squares_gap)
omega_of = jit_numpy(lambda rows, i: gap(whiten_gradients(rows, len(i)), i))
predict = jit_numpy(population.predict)


def draw(seed, copies=1):
    """Rows of few or of many ``copies``, each an orthogonal mixture of the first."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(M, D + 1)) ** rng.choice([1, 3])
    rows /= np.linalg.norm(rows[:, :D], 2) / np.sqrt(M)  # λ_max(H) = 1
    turns = [np.eye(M), *(np.linalg.qr(rng.normal(size=(M, M)))[0] for _ in range(copies - 1))]
    rows = np.concatenate([turn @ rows for turn in turns])
    return pools.Pool(rows[:, :D], rows[:, D]), rng


def disagreement(x, indices):
    """|H^{-1/2} (H_S - H) H^{-1/2}|_F."""
    whole, few = (rows.T @ rows / len(rows) for rows in (x, x[indices]))
    root = np.linalg.inv(np.linalg.cholesky(whole))
    return np.linalg.norm(root @ (few - whole) @ root.T)


@seeds
def test_second_moments_agree_up_to_the_stated_share(seed):
    pool, rng = draw(seed)
    indices = rng.permutation(M)[:SIZE]
    omega = omega_of(linear_gradients(rng.normal(size=(D + 1, D)), pool), indices)
    assert disagreement(pool.x, indices) <= spread(pool.x) * omega * (1 + 1e-9)


def test_control_one_checkpoint_knows_less_of_them():
    larger = 0
    for seed in range(20):
        pool, rng = draw(seed)
        indices = rng.permutation(M)[:SIZE]
        omega = omega_of(linear_gradients(rng.normal(size=(1, D)), pool), indices)
        larger += disagreement(pool.x, indices) > spread(pool.x) * omega
    assert larger > 0


@seeds
def test_where_the_objective_is_zero_nothing_moves(seed):
    pool, rng = draw(seed, copies=2)
    indices, x_query = np.arange(M), rng.normal(size=D)
    omega = omega_of(linear_gradients(rng.normal(size=(D + 1, D)), pool), indices)
    assert max(omega, disagreement(pool.x, indices)) < 1e-7
    assert max(*bounds(pool.x, pool.y, STEPS, 0.0), largest(pool.x, pool.y, 0.0)) == 0
    stack = jit_numpy(constructions.gradient_descent, static_argnums=1)(STEPS, D)
    answers = [predict(stack, pool.x[i], pool.y[i], x_query) for i in (indices, np.arange(2 * M))]
    np.testing.assert_allclose(*answers, atol=1e-9)
