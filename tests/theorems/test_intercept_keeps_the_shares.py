"""A classifier with an intercept keeps the shares, up to the gap, if matched before training too.

docs/theory, "An intercept keeps the shares". Sides: gradients of the cross-entropy by automatic
differentiation, and the gap of a subset in them; the classes counted in the subset and the pool.
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds

CLASSES = 3
D, M, SIZE, LATER = 3, 40, 8, 2


def cross_entropy(weights, x, label):  # [K, d + 1], [d + 1], [] -> []
    return -jax.nn.log_softmax(weights @ x)[label]


@jax.jit
def gradients(checkpoints, x, labels):  # [C, K, d + 1], [m, d + 1], [m] -> [m, C·K·(d+1)]
    by_checkpoint = jax.vmap(jax.grad(cross_entropy), (0, None, None))
    every = jax.vmap(by_checkpoint, (None, 0, 0))(checkpoints, x, labels)
    return every.reshape(len(x), -1)


def gap_and_change(seed, classes, intercept=1.0, size=1.0):
    """A subset's gap, and how far its shares of the classes are from the pool's."""
    rng = np.random.default_rng(seed)
    labels, indices = rng.integers(0, classes, M), rng.choice(M, SIZE, replace=False)
    x = np.concatenate([size * rng.normal(size=(M, D)), np.full((M, 1), intercept)], axis=1)
    checkpoints = rng.normal(size=(1 + LATER, classes, D + 1))
    checkpoints[0] = 0  # before training
    every = np.asarray(gradients(jnp.asarray(checkpoints), jnp.asarray(x), jnp.asarray(labels)))
    one_hot = np.eye(classes)[labels]
    moves = (rows[indices].mean(0) - rows.mean(0) for rows in (every, one_hot))
    return [np.linalg.norm(move) for move in moves]


@seeds
def test_shares_are_off_by_the_gap_at_most(seed):
    gap, change = gap_and_change(seed, CLASSES)
    assert change <= gap * (1 + 1e-12)


def test_control_without_an_intercept_no_gap_is_too_small_for_other_shares():
    pairs = [gap_and_change(seed, 3, intercept=0.0, size=1e-3) for seed in range(20)]
    assert all(change > gap for gap, change in pairs if change > 0.05)
    assert any(change > 0.05 for _, change in pairs)
