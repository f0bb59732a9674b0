"""What may be done to a prompt without changing the predictions of gradient-descent layers.

docs/theory, "Symmetries of predictions". The weights are W_pv = diag(0, -1), W_kq = diag(A_l, 0).
Sides: predictions for the transformed prompt and for the plain one. Beside every symmetry stands a
near miss that is none.
"""

import numpy as np

from draws import differ, on_host, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions

N, D, L = 6, 3, 3
forward = on_host(
    lambda params, tokens, **rule: layer_predictions(
        linear_attention.forward(params, tokens, **rule)
    ),
    static_argnames=("keys", "normalise"),
)
preconditioned = on_host(constructions.preconditioned)


def draw(seed):
    """Covariates [n+1, d], labels [n] twice, preconditioners [L, d, d], a rotation [d, d]."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return (
        rng.normal(size=(N + 1, D)),
        rng.normal(size=(2, N)),
        rng.normal(size=(L, D, D)) / D,
        rotation,
    )


def predictions(params, x, y, keys="demonstrations", normalise=True):  # [L+1]
    tokens = np.column_stack([x, np.append(y, 0.0)])
    return forward(params, tokens, keys=keys, normalise=normalise)


def from_superposition(seed, structured):
    x, (first, second), steps, _ = draw(seed)
    weights = 0.3 * np.random.default_rng(seed).normal(size=(2, L, 1, D + 1, D + 1))
    params = preconditioned(steps) if structured else linear_attention.Params(*weights)
    parts = 2 * predictions(params, x, first) - 3 * predictions(params, x, second)
    return differ(predictions(params, x, 2 * first - 3 * second), parts)


@seeds
def test_predictions_are_linear_in_the_labels(seed):
    assert from_superposition(seed, structured=True) < 1e-10


def under_change_of_covariates(seed, follow):
    """x → Mx with A → M^{-T} A M^{-1}, which leaves every score x_i·A x_t as it is."""
    x, (y, _), steps, rotation = draw(seed)
    M = rotation * np.geomspace(0.5, 2.0, D) @ rotation[::-1]
    inverse = np.linalg.inv(M)
    moved = preconditioned(inverse.T @ steps @ inverse if follow else steps)
    still = preconditioned(steps)
    return differ(predictions(moved, x @ M.T, y), predictions(still, x, y))


@seeds
def test_preconditioners_may_follow_a_change_of_covariates(seed):
    assert under_change_of_covariates(seed, follow=True) < 1e-10


def under_rotation(seed, anisotropy):
    x, (y, _), _, rotation = draw(seed)
    step = np.diag(1 + anisotropy * np.linspace(-1.0, 1.0, D)) / D
    params = preconditioned(np.broadcast_to(step, (L, D, D)))
    return differ(predictions(params, x @ rotation.T, y), predictions(params, x, y))


@seeds
def test_isotropic_steps_do_not_see_a_rotation_of_the_covariates(seed):
    assert under_rotation(seed, anisotropy=0.0) < 1e-10


def under_duplication(seed, keys="demonstrations", normalise=True):
    x, (y, _), steps, _ = draw(seed)
    params = preconditioned(steps)
    twice = np.concatenate([x[:-1], x]), np.concatenate([y, y])
    rule = keys, normalise
    return differ(predictions(params, *twice, *rule), predictions(params, x, y, *rule))


@seeds
def test_a_context_given_twice_is_the_same_context(seed):
    assert under_duplication(seed) < 1e-10


def test_control_the_near_misses_change_the_predictions():
    assert from_superposition(0, structured=False) > 1e-2
    assert under_change_of_covariates(0, follow=False) > 1e-2
    assert under_rotation(0, anisotropy=0.5) > 1e-2
    assert under_duplication(0, normalise=False) > 1e-2
    assert under_duplication(0, keys="all") > 1e-3  # twice as many keys against one query
