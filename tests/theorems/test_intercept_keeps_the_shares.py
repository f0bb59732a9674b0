"""A classifier with an intercept that is matched before training too keeps the shares of classes up
to the gap.

docs/theory, "An intercept keeps the shares".
"""

import jax
import numpy as np

from draws import jit_numpy, seeds

CLASSES, D, M, SIZE = 3, 3, 40, 8


@jit_numpy
def gradients(checkpoints, x, labels):  # [C, K, d + 1], [m, d + 1], [m] -> [m, C·K·(d+1)]
    def cross_entropy(weights, x, label):
        return -jax.nn.log_softmax(weights @ x)[label]

    at_checkpoints = jax.vmap(jax.grad(cross_entropy), (0, None, None))
    return jax.vmap(at_checkpoints, (None, 0, 0))(checkpoints, x, labels).reshape(len(x), -1)


def gap_and_change(seed, intercept=1.0, size=1.0):
    """A subset's gap, and how far its shares of the classes are from the pool's."""
    rng = np.random.default_rng(seed)
    labels, indices = rng.integers(0, CLASSES, M), rng.choice(M, SIZE, replace=False)
    x = np.column_stack([size * rng.normal(size=(M, D)), np.full(M, intercept)])
    checkpoints = rng.normal(size=(3, CLASSES, D + 1))
    checkpoints[0] = 0  # before training
    rows, one_hot = gradients(checkpoints, x, labels), np.eye(CLASSES)[labels]
    return [np.linalg.norm(r[indices].mean(0) - r.mean(0)) for r in (rows, one_hot)]


@seeds
def test_shares_are_off_by_the_gap_at_most(seed):
    gap, change = gap_and_change(seed)
    assert change <= gap * (1 + 1e-12)
    if seed == 0:  # Control: without an intercept no gap is too small for other shares
        pairs = [gap_and_change(other, intercept=0.0, size=1e-3) for other in range(20)]
        assert all(change > gap for gap, change in pairs if change > 0.05)
        assert any(change > 0.05 for _, change in pairs)
