"""d + 1 affinely independent checkpoints determine XᵀX/n and Xᵀy/n; d do not.

docs/theory, "Checkpoints determine moments". The mean gradient at w is ḡ(w) = S w - b, S = XᵀX/n,
b = Xᵀy/n: an affine map of w, known from its values at d + 1 points in general position. Sides:
linear_gradients of the demonstrations; the moments, computed from X and y.
"""

import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.selection.prefix import linear_gradients
from lsa_lab.tasks.pools import Pool

gradients = jit_numpy(linear_gradients)
SHAPES = [(2, 5), (4, 3)]  # d, n


def draw(seed, d, n):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng


def mean_gradients(x, y, weights):  # [C, d]
    return gradients(weights, Pool(x, y)).mean(0).reshape(weights.shape)


def moments(x, y):
    return np.concatenate([x.T @ x / len(x), -(x.T @ y / len(x))[:, None]], axis=1)  # [S, -b]


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_mean_gradients_at_d_plus_one_checkpoints_give_the_moments(shape, seed):
    x, y, rng = draw(seed, *shape)
    turn = np.linalg.qr(rng.normal(size=(shape[0] + 1,) * 2))[0]
    weights = turn[:, :-1] / turn[:, -1:]
    recovered = mean_gradients(x, y, weights).T @ np.diag(turn[:, -1]) @ turn
    size = np.abs(weights).max()  # a point far out costs digits
    np.testing.assert_allclose(recovered, moments(x, y), rtol=1e-10, atol=1e-13 * size + 1e-11)


def twin(x, y, weights, rng):
    """Other demonstrations with the same mean gradients, where [w, 1] has a null vector (u, v).

    S + u uᵀ and b - v u will do, and any such pair belongs to n > d demonstrations.
    """
    n, d = x.shape
    *_, last = np.linalg.svd(np.c_[weights, np.ones(len(weights))])[2]
    u, v = last[:-1], last[-1]
    root = np.linalg.cholesky(x.T @ x / n + np.outer(u, u))
    spread = np.linalg.qr(rng.normal(size=(n, d)))[0] * np.sqrt(n)
    return spread @ root.T, spread @ np.linalg.solve(root, x.T @ y / n - v * u)


@pytest.mark.parametrize("points", ["too few", "on a line"])
def test_control_other_checkpoints_do_not_tell_demonstrations_apart(points):
    x, y, rng = draw(1, 4, 12)
    weights = rng.normal(size=(4, 4))
    if points == "on a line":
        weights = weights[:1] + np.arange(9.0)[:, None] * weights[1:2]
    other = twin(x, y, weights, rng)
    ours = mean_gradients(x, y, weights)
    np.testing.assert_allclose(mean_gradients(*other, weights), ours, rtol=1e-9, atol=1e-9)
    assert np.abs(moments(*other) - moments(x, y)).max() > 0.05
    more = rng.normal(size=(1, 4))
    assert np.abs(mean_gradients(*other, more) - mean_gradients(x, y, more)).max() > 0.01
