"""What may be done to a prompt without changing the predictions of gradient-descent layers.

docs/theory, "Symmetries of predictions". The weights are W_pv = diag(0, -1), W_kq = diag(A_l, 0).
Sides: predictions for the transformed prompt and for the plain one. Beside every symmetry stands a
near miss that is none.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, relative_error, seed_and, seeds
from lsa_lab import estimators
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt

N, D, L = 6, 3, 3
preconditioned = jit_numpy(constructions.preconditioned)
largest_step, descent = jit_numpy(estimators.largest_step), jit_numpy(estimators.gradient_descent)


def draw(seed):
    """Covariates [n+1, d], labels [n] twice, preconditioners [L, d, d], a rotation [d, d]."""
    rng = np.random.default_rng(seed)
    x, labels, steps, turn = (rng.normal(size=s) for s in ((N + 1, D), (2, N), (L, D, D), (D, D)))
    return x, labels, steps / D, np.linalg.qr(turn)[0]


@partial(jit_numpy, static_argnames=("keys", "normalise"))
def predictions(params, x, y, keys="demonstrations", normalise=True):  # [L+1]
    tokens = jnp.column_stack([x, jnp.append(y, 0.0)])
    trace = linear_attention.forward(params, tokens, keys=keys, normalise=normalise)
    return layer_predictions(trace)


def from_superposition(seed, structured):
    x, (first, second), steps, _ = draw(seed)
    weights = 0.3 * np.random.default_rng(seed).normal(size=(2, L, 1, D + 1, D + 1))
    params = preconditioned(steps) if structured else linear_attention.Params(*weights)
    parts = 2 * predictions(params, x, first) - 3 * predictions(params, x, second)
    return relative_error(predictions(params, x, 2 * first - 3 * second), parts)


@seeds
def test_predictions_are_linear_in_the_labels(seed):
    assert from_superposition(seed, structured=True) < 1e-10


def under_change_of_covariates(seed, follow):
    """x → Mx with A → M^{-T} A M^{-1}, which leaves every score x_i·A x_t as it is."""
    x, (y, _), steps, rotation = draw(seed)
    M = rotation * np.geomspace(0.5, 2.0, D) @ rotation[::-1]
    inverse = np.linalg.inv(M)
    moved = preconditioned(inverse.T @ steps @ inverse if follow else steps)
    return relative_error(predictions(moved, x @ M.T, y), predictions(preconditioned(steps), x, y))


@seeds
def test_preconditioners_may_follow_a_change_of_covariates(seed):
    assert under_change_of_covariates(seed, follow=True) < 1e-10


def under_rotation(seed, anisotropy):
    x, (y, _), _, rotation = draw(seed)
    step = np.diag(1 + anisotropy * np.linspace(-1.0, 1.0, D)) / D
    params = preconditioned(np.broadcast_to(step, (L, D, D)))
    return relative_error(predictions(params, x @ rotation.T, y), predictions(params, x, y))


@seeds
def test_isotropic_steps_do_not_see_a_rotation_of_the_covariates(seed):
    assert under_rotation(seed, anisotropy=0.0) < 1e-10


def under_duplication(seed, keys="demonstrations", normalise=True):
    x, (y, _), steps, _ = draw(seed)
    params = preconditioned(steps)
    twice = np.concatenate([x[:-1], x]), np.concatenate([y, y])
    rule = keys, normalise
    return relative_error(predictions(params, *twice, *rule), predictions(params, x, y, *rule))


@seeds
def test_a_context_given_twice_is_the_same_context(seed):
    assert under_duplication(seed) < 1e-10


def under_scaling(seed, factor, share, own_step=True):
    """Weights of descent on (cx, cy) and on (x, y), with steps a/λ_max(H) of its own or of one."""
    x, (y, _), *_ = draw(seed)
    prompts = [Prompt(c * x[:-1], c * y, x[-1], np.zeros(())) for c in (1, factor)]
    steps = [largest_step(prompts[i].x) for i in (0, int(own_step))]
    before, after = map(descent, prompts, [np.full(L, share * step) for step in steps])
    return relative_error(after, before)


@seed_and(factor=(0.2, 5.0), share=(0.1, 1.9))
def test_with_steps_of_its_own_weights_of_descent_are_the_same_at_every_scale(seed, factor, share):
    assert under_scaling(seed, factor, share) < 1e-10


def test_control_the_near_misses_change_the_predictions():
    assert from_superposition(0, structured=False) > 1e-2
    assert under_change_of_covariates(0, follow=False) > 1e-2
    assert under_rotation(0, anisotropy=0.5) > 1e-2
    assert under_duplication(0, normalise=False) > 1e-2
    assert under_scaling(0, 1.3, 0.5, own_step=False) > 1e-3
    assert under_duplication(0, keys="all") > 1e-3  # twice as many keys against one query
