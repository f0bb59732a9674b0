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
)
from lsa_lab import estimators
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt

L, N, D = 3, 5, 3
largest_step, descent = jit_numpy(estimators.largest_step), jit_numpy(estimators.gradient_descent)


def predictions(params, x, y, **rule):  # [L+1]
    return layer_predictions(forward(params, np.column_stack([x, np.append(y, 0.0)]), **rule))


def superposed_labels(x, y, steps, rng, exact):  # predictions are linear in the labels
    params = preconditioned(steps) if exact else draw_stack(rng, L, 1, D + 1)
    other = rng.normal(size=N)
    parts = 2 * predictions(params, x, y) - 3 * predictions(params, x, other)
    return predictions(params, x, 2 * y - 3 * other), parts


def changed_covariates(x, y, steps, rng, exact):
    """x → Mx with A → M⁻ᵀ A M⁻¹ (A, if it is isotropic, for a rotation): x_i·A x_t stay."""
    rotation = draw_rotation(rng, D)
    M = rotation * np.geomspace(0.5, 2.0, D) @ rotation[::-1]
    inverse = np.linalg.inv(M)
    moved = preconditioned(inverse.T @ steps @ inverse if exact else steps)
    return predictions(moved, x @ M.T, y), predictions(preconditioned(steps), x, y)


def duplicated_context(x, y, steps, rng, exact):
    params, keys = preconditioned(steps), "demonstrations" if exact else "all"
    twice = predictions(params, np.concatenate([x[:-1], x]), np.append(y, y), keys=keys)
    return twice, predictions(params, x, y, keys=keys)


def scaled_prompt(x, y, steps, rng, exact):
    """Weights of descent on (cx, cy) and on (x, y), with steps a/λ_max(H) of its own or of one."""
    prompts = [Prompt(c * x[:-1], c * y, x[-1], np.zeros(())) for c in (1, rng.uniform(1.5, 3))]
    lengths = [largest_step(prompts[i].x) for i in (0, int(exact))]
    before, after = map(descent, prompts, [np.full(L, 0.5 * length) for length in lengths])
    return after, before


def error(symmetry, seed, exact):
    rng = np.random.default_rng(seed)
    prompt = rng.normal(size=(N + 1, D)), rng.normal(size=N)
    return relative_error(*symmetry(*prompt, rng.normal(size=(L, D, D)) / D, rng, exact=exact))


@pytest.mark.parametrize(
    "symmetry", [superposed_labels, changed_covariates, duplicated_context, scaled_prompt]
)
@seeds
def test_a_symmetry_leaves_predictions_as_they_are_and_control_a_near_miss_not(symmetry, seed):
    assert error(symmetry, seed, exact=True) < 1e-10
    assert error(symmetry, 0, exact=False) > 1e-3
