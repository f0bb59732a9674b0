"""What may be done to a prompt without changing the predictions of gradient-descent layers.

W_pv = diag(0, -1), W_kq = diag(A_l, 0). Every symmetry returns two predictions, equal if it is
exact and not for a near miss. docs/theory, "Symmetries of predictions".
"""

import numpy as np
import pytest

from draws import (
    draw_rotation,
    draw_stack,
    forward,
    jit_numpy,
    preconditioned,
    relative_error,
    seeds,
    sizes,
)
from lsa_lab import estimators
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt

L = 3
largest_step, descent = jit_numpy(estimators.largest_step), jit_numpy(estimators.gradient_descent)


def predictions(params, x, y, **rule):  # [L+1]
    return layer_predictions(forward(params, np.column_stack([x, np.append(y, 0.0)]), **rule))


def superposed_labels(x, y, steps, rng, exact):  # predictions are linear in the labels
    params = preconditioned(steps) if exact else draw_stack(rng, L, 1, x.shape[1] + 1)
    other = rng.normal(size=len(y))
    parts = 2 * predictions(params, x, y) - 3 * predictions(params, x, other)
    return predictions(params, x, 2 * y - 3 * other), parts


def changed_covariates(x, y, steps, rng, exact):
    """x → Mx with A → M⁻ᵀ A M⁻¹, which leaves every score x_i·A x_t as it is."""
    rotation = draw_rotation(rng, x.shape[1])
    M = rotation * np.geomspace(0.5, 2.0, len(rotation)) @ rotation[::-1]
    inverse = np.linalg.inv(M)
    moved = preconditioned(inverse.T @ steps @ inverse if exact else steps)
    return predictions(moved, x @ M.T, y), predictions(preconditioned(steps), x, y)


def rotated_covariates(x, y, steps, rng, exact):  # isotropic steps do not see it
    scales = np.full(x.shape[1], 1.0) if exact else np.linspace(0.5, 1.5, x.shape[1])
    params = preconditioned(np.broadcast_to(np.diag(scales) / len(scales), steps.shape))
    turned = x @ draw_rotation(rng, x.shape[1]).T
    return predictions(params, turned, y), predictions(params, x, y)


def duplicated_context(x, y, steps, rng, exact, **rule):
    params, rule = preconditioned(steps), rule or dict(normalise=exact)
    twice = predictions(params, np.concatenate([x[:-1], x]), np.append(y, y), **rule)
    return twice, predictions(params, x, y, **rule)


def duplicated_context_of_a_query_that_is_a_key(*case, exact):
    return duplicated_context(*case, exact=exact, keys="demonstrations" if exact else "all")


def scaled_prompt(x, y, steps, rng, exact):
    """Weights of descent on (cx, cy) and on (x, y), with steps a/λ_max(H) of its own or of one."""
    prompts = [Prompt(c * x[:-1], c * y, x[-1], np.zeros(())) for c in (1, rng.uniform(1.5, 3))]
    lengths = [largest_step(prompts[i].x) for i in (0, int(exact))]
    before, after = map(descent, prompts, [np.full(L, 0.5 * length) for length in lengths])
    return after, before


SYMMETRIES = (superposed_labels, changed_covariates, rotated_covariates, duplicated_context)
SYMMETRIES += (duplicated_context_of_a_query_that_is_a_key, scaled_prompt)
each_symmetry = pytest.mark.parametrize("symmetry", SYMMETRIES)


def error(symmetry, n, d, seed, exact):
    rng = np.random.default_rng(seed)
    x, y, steps = rng.normal(size=(n + 1, d)), rng.normal(size=n), rng.normal(size=(L, d, d)) / d
    return relative_error(*symmetry(x, y, steps, rng, exact=exact))


@each_symmetry
@sizes
@seeds
def test_a_symmetry_leaves_the_predictions_as_they_are(symmetry, n, d, seed):
    assert error(symmetry, n, d, seed, exact=True) < 1e-10


@each_symmetry
def test_control_a_near_miss_changes_them(symmetry):
    assert error(symmetry, 6, 3, 0, exact=False) > 1e-3
