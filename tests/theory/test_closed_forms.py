"""Closed forms at their limits: digits that stay, derivatives, bounds by hand and by trying."""

import itertools
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import (
    amplification,
    depth,
    generalization,
    learning_curves,
    matching,
    risk,
    rotating_covariance,
)
from lsa_lab.theory.alignment import aligned_risk
from lsa_lab.theory.asymptotics import ridge_risk, ridgeless_risk


def test_the_bound_at_its_limits_and_at_any_little_noise():
    """At n = d the smallest eigenvalue reaches zero, and 1/(x + κ) has to be resolved there."""
    np.testing.assert_allclose(risk.rotation_invariant_bound(4, 9, 0.0), 5 / 9)
    np.testing.assert_allclose(risk.rotation_invariant_bound(4, 9, 1e12), 1.0)
    scaled = 3.0 * risk.rotation_invariant_bound(4, 9, 0.5 / 3.0)
    np.testing.assert_allclose(risk.rotation_invariant_bound(4, 9, 0.5, 3.0), scaled)
    np.testing.assert_allclose(risk.min_norm(4, 9, 2.0, 4.0), 4 * risk.min_norm(4, 9, 0.5))
    little = risk.rotation_invariant_bound(8, 8, 1e-22)
    for exponent in (26, 30, 40, 100):
        less = risk.rotation_invariant_bound(8, 8, 10.0**-exponent)
        np.testing.assert_allclose(less, little * 10.0 ** (11 - exponent / 2), rtol=1e-9)


def test_curves_begin_at_the_risk_of_predicting_zero_and_end_without_noise():
    curves = [learning_curves.additive, learning_curves.delta_rule, learning_curves.implicit]
    for curve in [*curves, learning_curves.ridge, learning_curves.delta]:
        np.testing.assert_array_equal(curve(0, 4, 0.1), [1.0])
    np.testing.assert_allclose(learning_curves.delta_rule(60, 1, 0.0)[-1], (2 / 3) ** 60, rtol=1e-9)
    np.testing.assert_allclose(learning_curves.ridge(4, 4, 0.0), [1, 0.75, 0.5, 0.25, 0], atol=1e-9)
    assert np.isfinite(learning_curves.delta_rule(4000, 1, 0.0)).all()


def test_a_curve_that_grows_without_end_ends_at_infinity_and_a_ratio_after_a_blow_up():
    curve = jit_numpy(learning_curves.lms, static_argnums=(0, 1))(500, 3, 0.2, 10.0)
    assert (np.diff(curve[:10]) > 0).all()
    assert (curve[-100:] == np.inf).all()
    assert not np.isnan(curve).any()
    depths = np.array([0.5, 2.0, 5.0])
    ratio = amplification.one_coordinate_ratio(0.125, np.array([2.0, 1.0]), 0.0, depths)
    assert np.isfinite(ratio[0])
    np.testing.assert_array_equal(ratio[1:], [np.inf, np.nan])  # the second has blown up, too
    turned = amplification.one_coordinate_ratio(0.125, np.array([1.0, 2.0]), 0.0, depths[1:2])
    assert turned[0] == 0


ALPHA, NOISE_VAR = 2.0, 0.1


def in_many_digits(kappa, tau):
    """The formulas of docs/theory, "Pretraining on finite data", in 120 digits."""
    with localcontext() as context:
        context.prec = 120
        alpha, kappa, tau, noise_var = map(Decimal, (ALPHA, kappa, tau, NOISE_VAR))
        q, c = (1 + noise_var) / alpha, 1 / kappa

        def stieltjes(z):
            linear = z + 1 - c
            transform = 2 / (linear + (linear**2 + 4 * c * z).sqrt())
            return transform, -(c * transform**2 + transform) / (2 * c * z * transform + linear)

        share, unfitted = min(tau, Decimal(1)), max(1 - tau, Decimal(0))
        linear = unfitted * (q + 1 - c * share)
        level = (linear + (linear**2 + 4 * share * c * q * unfitted**2).sqrt()) / (2 * share)
        (transform, slope), at_q = stieltjes(q + level), stieltjes(q)[0]
        unexplained = noise_var + q * (1 - q * at_q)
        shrunk = q**2 * at_q + (level**2 - q**2) * transform + level * (q + level) ** 2 * slope
        degrees = 1 - 2 * level * transform - level**2 * slope
        pretraining = (unexplained + shrunk) / (1 - degrees / tau)
        square = 1 - 2 * (q + level) * transform - (q + level) ** 2 * slope
        square += pretraining / tau * (transform + level * slope)
        new = 1 + noise_var - 2 * (1 - (q + level) * transform) + (1 + q) * square
        return float(new), float(pretraining)


aligned = jax.jit(aligned_risk)


@pytest.mark.parametrize("tau", [1e-12, 0.5, 3.0])
def test_pretraining_risks_are_right_to_the_last_digits(tau):
    for kappa in (1e3, 1.0, 1e-4, 1e-8, 1e-12, 1e-16, 1e-30):
        expected = in_many_digits(kappa, tau)
        risks = ridgeless_risk(ALPHA, kappa, tau, NOISE_VAR)
        np.testing.assert_allclose(risks, expected, rtol=1e-14)
        risks = aligned(np.ones(2), np.ones(2), ALPHA, kappa, tau, NOISE_VAR)
        np.testing.assert_allclose(risks, expected, rtol=5e-14)


def test_risks_that_vanish_with_the_noise_or_the_penalty_keep_their_digits():
    q, tau = 1e-9, 3.0  # many tasks: R is I, Γ is 1/(1 + q)
    risks = ridgeless_risk(1 / q, np.inf, tau, 0.0), aligned([1.0], [1.0], 1 / q, np.inf, tau, 0.0)
    expected = q / (1 + q) / (1 - 1 / tau)
    np.testing.assert_allclose(risks, np.full((2, 2), expected), rtol=1e-14)
    ridge = ridge_risk(ALPHA, 1e-12, 3.0, NOISE_VAR, 1e-13)
    np.testing.assert_allclose(ridge, ridgeless_risk(ALPHA, 1e-12, 3.0, NOISE_VAR), rtol=1e-9)


@pytest.mark.parametrize(
    ("risks", "places"),
    [
        (lambda alpha, penalty: ridge_risk(alpha, 1.0, 0.5, NOISE_VAR, penalty), [(4.0, 0.3)]),
        (
            lambda alpha, tau: aligned_risk([0.3, 3.0], [1.0, 0.2], alpha, 1.0, tau, NOISE_VAR),
            [(4.0, 0.5), (4.0, 3.0)],
        ),
    ],
)
def test_roots_have_the_derivatives_of_implicit_functions(risks, places):
    run, differentiate = jax.jit(risks), jax.jit(jax.jacrev(risks, (0, 1)))
    for place in places:
        slopes = np.array(differentiate(*place))
        for slope, move in zip(slopes.T, 1e-5 * np.eye(2), strict=True):
            above, below = (np.array(run(*(place + sign * move))) for sign in (1, -1))
            np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize(
    "closed_form",
    [
        lambda a, b: depth.best_descent(a, b, 2),
        lambda a, b: learning_curves.delta(2, 4, b, a),
        lambda a, b: learning_curves.gated_delta(2, 4, b, a, b, a),
        lambda a, b: learning_curves.lms(2, 4, b, a, b, a),
    ],
)
def test_numbers_of_any_dtype_give_the_curves_of_the_default_one(closed_form):
    expected, form = closed_form(1.0, 1.0), jax.jit(closed_form)
    single, whole = jnp.float32(1), jnp.int32(1)
    np.testing.assert_allclose(closed_form(whole, whole), expected, rtol=1e-15, strict=True)
    for a, b in ((single, single), (whole, 1.0), (1, single)):
        np.testing.assert_allclose(form(a, b), expected, rtol=1e-15, strict=True)


def test_an_eigenvalue_that_is_zero_or_repeats_but_for_rounding_takes_no_layer_that_moves():
    # as LAPACK has them, which rounds otherwise on another processor
    values = np.array([-3e-17, 0.5 - 2**-53, 0.5 + 2**-52, 1 - 2**-52, 1 + 2**-51])
    steps, gammas = rotating_covariance.moving_inverse(values)
    np.testing.assert_allclose(steps[0], 2)
    assert len(steps) == len(gammas) == 2


B, L, E = 40, 3, 2
D = E * E
UPDATES = 1 + np.random.default_rng(0).normal(size=(B, L, E, E))


def test_the_bound_is_the_root_of_the_mean_of_its_summands_and_centring_lowers_it():
    root = np.random.default_rng(1).normal(size=(D, D))
    covariance = root @ root.T + np.eye(D)
    found = generalization.summands(UPDATES[0], covariance)
    bound = generalization.trajectory_bound(UPDATES[0], covariance, 0.5, 20)
    np.testing.assert_allclose(bound, np.sqrt(0.25 / 20 * found.sum()))
    plain = generalization.trajectory_bound(UPDATES, 0.1, 1.0, 20)
    assert generalization.trajectory_bound(UPDATES, 0.1, 1.0, 20, centred=True) < plain
    few = UPDATES[:3]
    expected = D * np.log1p(few.var(0, ddof=1).sum((1, 2)) / (D * 0.1))
    np.testing.assert_allclose(generalization.summands(few, 0.1, centred=True), expected)


def test_a_run_that_diverged_has_no_bound_and_no_update_the_bound_zero():
    broken = UPDATES[0].copy()
    broken[0, 0, 0] = np.nan
    assert np.isnan(generalization.trajectory_bound(broken, 0.1, 1.0, 20))
    assert generalization.trajectory_bound(np.zeros_like(broken), 0.1, 1.0, 20) == 0


def test_a_measured_gap_clips_the_losses():
    population, demonstrations = jnp.array([0.5, 9.0, 1.0]), jnp.array([-1.0, 0.5])
    found = generalization.measured_gap(population, demonstrations, 0.0, 2.0)
    np.testing.assert_allclose(found.population, 3.5 / 3)
    np.testing.assert_allclose(found.empirical, 0.25)
    np.testing.assert_allclose(found.gap, 3.5 / 3 - 0.25)
    assert found.subgaussian == 1.0


def test_the_moment_spread_is_that_of_the_widest_quadratic_statistic_in_any_units():
    signs = jnp.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    np.testing.assert_allclose(matching.moment_spread(signs), 2**0.5, rtol=1e-12)
    rng = np.random.default_rng(0)
    x = rng.standard_t(5, size=(400, 3)) @ rng.normal(size=(3, 3))
    z = x @ np.linalg.cholesky(np.linalg.inv(x.T @ x / len(x)))
    squares = np.einsum("ni,nj->nij", z, z).reshape(len(x), -1)
    widest = np.linalg.norm(squares - squares.mean(0), 2) / len(x) ** 0.5
    np.testing.assert_allclose(matching.moment_spread(jnp.array(x)), widest, rtol=1e-10)


def test_the_gap_of_descent_is_finite_up_to_the_largest_step():
    x = np.array(list(itertools.product((-2.0, 2.0), (-1.0, 1.0))))  # H has eigenvalues 4 and 1
    for size, bounded in ((0.25, True), (0.26, False)):  # of the steepest direction
        gap = jax.jit(matching.descent_gap)(x, x @ np.array([1.0, -1.0]), np.full(2, size), 0.0)
        assert np.isfinite(gap).all() == bounded
