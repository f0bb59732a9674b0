"""Numbers that keep their digits where a plain formula would lose them, in whatever unit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators, prompts
from lsa_lab.analyses import alignment, clipping, common_map, heads, probes
from lsa_lab.models import constructions, linear_attention, recurrent_state
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import scale_by_power, scale_near_one
from lsa_lab.selection import scores
from lsa_lab.selection.whitening import whiten_gradients
from lsa_lab.theory import asymptotics, generalization, matching, optimum, plateaus
from lsa_lab.theory.alignment import aligned_risk

RNG = np.random.default_rng(0)
SINGLE, DOUBLE = np.float32, np.float64
TALL, LABELS = RNG.normal(size=(40, 3)), RNG.normal(size=40)


def prompt(x, y, dtype, scale=1.0):
    arrays = (scale * x, scale * y, np.ones(x.shape[1]), 0.0)
    return Prompt(*(np.asarray(array, dtype) for array in arrays))


ridge_risk, aligned, spread, gap, shifted_risk_floor, largest_step = map(
    jax.jit,
    (asymptotics.ridge_risk, aligned_risk, matching.moment_spread, matching.least_squares_gap,
     optimum.shifted_risk_floor, estimators.largest_step),
)  # fmt: skip
one_layer, one_layer_risk, rank_limited_risk, plateau_losses = (
    jax.jit(form, static_argnames="n")
    for form in (
        *(optimum.one_layer, optimum.one_layer_risk, optimum.rank_limited_risk),
        plateaus.plateaus,
    )
)
step_limit = jax.jit(estimators.preprocessed_step_limit, static_argnames="normalise")


@pytest.mark.parametrize("penalty", [1e3, 1e6, 1e18, 1e30])
def test_a_large_penalty_leaves_the_risk_of_predicting_zero(penalty):
    risks = np.array(ridge_risk(2.0, 0.5, 0.9, 0.1, penalty))
    first = np.array([2, 6]) / penalty  # Γ → R/ν or I/ν: 2 tr R, and 2 tr R² = 2 (1 + 1/κ) of it
    np.testing.assert_allclose(risks, 1.1 - first, rtol=100 / penalty**2 + 1e-14)


@pytest.mark.parametrize("tau", [3.0, 0.5])
@pytest.mark.parametrize("penalty", [1e-30, 1e20])
def test_in_single_precision_a_penalty_of_any_size_leaves_what_it_tends_to(penalty, tau):
    tends_to = asymptotics.ridgeless_risk(2.0, 0.5, tau, 0.1) if penalty < 1 else (1.1, 1.1)
    with jax.enable_x64(False):
        risks = ridge_risk(2.0, 0.5, tau, 0.1, penalty)
    np.testing.assert_allclose(risks, tends_to, rtol=1e-6)


@pytest.mark.parametrize("tau", [3.0, 0.5])
@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_in_single_precision_the_risks_of_any_unit_are_those_of_one_in_that_unit(unit, tau):
    train, test = np.array([0.3, 3.0]), np.array([1.0, 0.2])
    expected = unit * np.array(aligned(train, test, 2.0, 1.0, tau, 0.1))
    with jax.enable_x64(False):
        risks = aligned(unit * train, unit * test, 2.0, 1.0, tau, unit * 0.1)
    np.testing.assert_allclose(risks, expected, rtol=1e-6)


def test_both_forms_of_the_risk_meet_at_the_level_where_one_takes_over():
    penalties = np.linspace(0.3, 0.6, 31)  # ν = 1 at .42
    for risks in zip(*(ridge_risk(2.0, 0.5, 0.9, 0.1, p) for p in penalties), strict=True):
        smooth = np.polynomial.Polynomial.fit(penalties, np.array(risks), 16)
        np.testing.assert_allclose(risks, smooth(penalties), rtol=1e-11)


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6])
def test_the_constants_of_a_gap_forget_a_mean_however_large(mean):
    """Uncentred covariates square the condition of x in H; the bounds are those of x turned by any
    matrix, as one that takes the mean away from all but one column."""
    x = TALL + mean * np.array([1.0, 1.0, 1.0])[None]
    turn = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]]).T
    turned = x @ turn  # its first two columns have no mean
    turned[:, 2] /= max(mean, 1.0)
    for bound in (lambda rows: spread(rows), lambda rows: gap(rows, LABELS, 0.01)):
        np.testing.assert_allclose(bound(x), bound(turned), rtol=1e-13 * max(mean, 100) ** 1.2)


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_risks_of_long_prompts_are_not_lost_in_single_precision(n):
    eigenvalues = np.array([1.5, 0.7, 0.3])
    gammas = (1 + 1 / n) * eigenvalues + (eigenvalues.sum() + 0.1) / n
    lost = (eigenvalues * (eigenvalues + eigenvalues.sum() + 0.1) / (n * gammas)).sum()
    covariance, identity = np.diag(eigenvalues).astype(SINGLE), np.eye(3, dtype=SINGLE)
    noise_var = SINGLE(0.1)
    best = one_layer(covariance, identity, n=n, noise_var=noise_var)
    for risk in (
        one_layer_risk(best, covariance, identity, n=n, noise_var=noise_var),
        rank_limited_risk(covariance, identity, n=n, noise_var=noise_var)[-1],
        2 * plateau_losses(eigenvalues.astype(SINGLE), n=n, noise_var=noise_var)[-1],
    ):
        assert risk.dtype == SINGLE
        np.testing.assert_allclose(risk, lost, rtol=1e-5)
    floor = shifted_risk_floor(best, covariance, covariance, identity)
    assert 0 <= floor < 1e-9


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_steps_have_the_scale_of_the_covariates_and_of_the_labels(size):
    one = prompt(TALL, LABELS, SINGLE)
    x = SINGLE(size) * one.x
    step = float(largest_step(one.x))
    np.testing.assert_allclose(largest_step(x), step / size**2, rtol=1e-5)
    for normalise, of_x, of_y in ((False, 4, 2), (True, 2, 0)):
        limit = float(step_limit(one, normalise=normalise))
        larger = one.replace(x=x, y=one.y / SINGLE(size))
        own = step_limit(larger, normalise=normalise)
        np.testing.assert_allclose(own, limit * size ** (of_y - of_x), rtol=1e-4)


def table(scales, n):
    """Covariates whose columns have these sizes, in single precision, and labels without noise."""
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(n, len(scales))) * scales).astype(SINGLE)
    weights = rng.normal(size=len(scales)) / scales
    return x, (x.astype(float) @ weights).astype(SINGLE), weights


@pytest.mark.parametrize(
    ("scales", "n"), [((1, 0.01), 10_000), ((1, 5e4, 20, 0.3), 200), ((1e-19, 1, 1e19), 50)]
)
def test_no_column_is_lost_among_many_rows_or_larger_columns(scales, n):
    *rows, weights = table(np.array(scales), n)

    @jax.jit
    def fit(x, y):
        rows, stream = Prompt(x, y, x[0], y[0]), jnp.stack([x, y[:, None] * jnp.ones_like(x)])
        shared = common_map.best_common_map(x, stream).maps[1, 0]
        probe = [probes.fit(x, y[:, None])[:, 0]] if n >= 80 else []
        return [estimators.ols(rows), estimators.ridge(rows, 0.0), shared, *probe]

    for found in fit(*rows):
        np.testing.assert_allclose(found, weights, rtol=2e-5)


def test_a_probe_reads_beside_a_direction_that_is_much_larger():
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    states = rng.normal(size=(2000, 5)) * [1e3, 1, 1, 1, 1] @ turn
    targets = states @ turn[1:2].T
    probe = probes.fit(jnp.asarray(states, SINGLE), jnp.asarray(targets, SINGLE))
    np.testing.assert_allclose(probe, turn[1:2].T, atol=1e-4)


@pytest.mark.parametrize("sizes", [(2e-19,) * 3, (1e19,) * 3, (1e-9, 1.0, 1e9)])
@pytest.mark.parametrize("n", [40, 2])
def test_ridge_and_the_lasso_take_covariates_of_any_unit(sizes, n):
    """By w_j = v_j/s_j; scikit-learn, in double precision, has a penalty of one size."""
    from sklearn.linear_model import Lasso

    of_x, scale = np.array(sizes), max(sizes)
    x, y = TALL[:n] * of_x, LABELS[:n]
    gram = x.T @ x / n + 0.5 * scale**2 * np.eye(3)
    expected = np.linalg.solve(gram, x.T @ y / n)
    ours = estimators.ridge(prompt(x, y, SINGLE), 0.5 * scale**2)
    ours = np.asarray(ours, float) * of_x
    np.testing.assert_allclose(ours, expected * of_x, rtol=1e-5, atol=1e-30)
    fit = Lasso(0.05, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x / scale, y).coef_
    lasso = jax.jit(estimators.lasso)(prompt(x, y, SINGLE), 0.05 * scale)
    np.testing.assert_allclose(np.asarray(lasso, float) * scale, fit, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_unit_rows_and_recursive_ridge_have_no_unit(size):
    rows = jnp.asarray(TALL, SINGLE)
    unit, slopes = recurrent_state.unit_rows, jax.jit(jax.jacobian(recurrent_state.unit_rows))
    np.testing.assert_allclose(unit(SINGLE(size) * rows), unit(rows), rtol=1e-6)
    np.testing.assert_allclose(
        SINGLE(size) * slopes(SINGLE(size) * rows), slopes(rows), rtol=1e-5, atol=1e-5
    )
    scale = size**0.6  # its square is the penalty's unit
    one, other = prompt(TALL, LABELS, SINGLE), prompt(scale * TALL, scale * LABELS, SINGLE)
    path = estimators.recursive_ridge(one, 0.1)
    ours = estimators.recursive_ridge(other, 0.1 * scale**2)
    np.testing.assert_allclose(ours, path, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("penalty", [1.0, 1e-4, 1e-7, 1e-20])
def test_recursive_ridge_keeps_its_digits_at_every_penalty(penalty):
    whole = prompt(TALL, LABELS, SINGLE)
    path = jax.jit(estimators.recursive_ridge)(whole, penalty)
    for t in (1, 2, 3, 4, 40):
        x, y = (np.asarray(leaf[:t], float) for leaf in (whole.x, whole.y))
        rows = np.concatenate([x, penalty**0.5 * np.eye(3)])
        expected = np.linalg.lstsq(rows, np.pad(y, (0, 3)), rcond=0)[0]
        np.testing.assert_allclose(path[t], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("weight", "layers"), [(2, 3), (0.5, 30), (3, 30)])
def test_a_skip_of_any_kind_of_number_and_of_many_layers_is_a_power(weight, layers):
    params = linear_attention.Params(*RNG.normal(size=(2, layers, 1, 2, 2)))
    powers = np.array([float(weight) ** (2 * t - 1) for t in range(layers)])
    ours = constructions.scale_skip(params, weight)
    np.testing.assert_allclose(ours.w_pv, params.w_pv * powers[:, None, None, None], rtol=1e-12)
    single = jax.tree.map(lambda leaf: leaf.astype(SINGLE), params)
    with pytest.raises(ValueError, match=r"weight = 1e\+30 over .* leave float32"):
        constructions.scale_skip(single, 1e30)


def test_a_matrix_that_is_singular_in_its_precision_has_no_condition():
    rank_one = np.outer(RNG.normal(size=7), RNG.normal(size=5))
    for dtype in (SINGLE, DOUBLE):
        assert np.isinf(clipping.condition_number(jnp.asarray(rank_one, dtype)))
    steep = jnp.diag(jnp.asarray([1.0, 1e-5], SINGLE))  # control
    np.testing.assert_allclose(clipping.condition_number(steep), 1e5, rtol=1e-5)


SCALES = (1.0, 1e-3, 1e3, 0.0, np.nan)
ROWS, OTHERS = (jnp.asarray(RNG.normal(size=(6, 3))) for _ in range(2))
STREAM = jnp.stack([ROWS, OTHERS])
MANY = jnp.asarray(RNG.normal(size=(60, 3)))
PROMPT = Prompt(ROWS[:, :2], ROWS[:, 2], ROWS[0, :2], jnp.zeros(()))


def labels(scale):
    return PROMPT.replace(y=scale * PROMPT.y)


def over(result, scale):
    return result / jnp.where(scale > 0, scale, 1)


# A function of a scale that does not depend on it, and what it is at 0.
UNITLESS = {
    "the cosine of weights": (
        lambda s: alignment.distances(jnp.zeros(6), s * ROWS, OTHERS, ROWS[0]).cosine,
        0,
    ),
    "a common map's residual": (lambda s: common_map.best_common_map(ROWS, s * STREAM).residual, 0),
    "what no map explains": (lambda s: common_map.best_common_map(ROWS, s * STREAM).unexplained, 0),
    "the shares of heads": (lambda s: heads.normalised(s * ROWS), 0),
    "a condition number": (lambda s: clipping.condition_number(s * ROWS), jnp.inf),
    "a probe": (lambda s: s * probes.fit(s * MANY, MANY @ ROWS.T), 0),
    "descent on features": (lambda s: probes.descend(s * ROWS, PROMPT.y[1:], 3), 0),
    "descent by correlation": (
        lambda s: over(
            estimators.preprocessed_gradient_descent(labels(s), 0.1, 3, normalise=True), s
        ),
        0,
    ),
    "the lasso": (lambda s: over(estimators.lasso(labels(s), 0.1 * s + 1e-30), s), 0),
    "the norm of a flow": (lambda s: over(scores.flow_norm(s * ROWS), s), 0),
    "the similarity of a query": (lambda s: scores.similarity(ROWS, s * ROWS[0, :2]), 0),
    "white gradients": (lambda s: jnp.abs(whiten_gradients(s * ROWS, 3)), 0),
    "a bound on the gap": (
        lambda s: generalization.trajectory_bound(s * STREAM[:, :3], 1e3 * s**2 + 1e-30, 1.0, 9),
        0,
    ),
}


@pytest.mark.parametrize("name", UNITLESS)
def test_small_numbers_are_treated_as_large_ones_are_and_what_is_none_as_none(name):
    call, at_zero = UNITLESS[name]
    first, *others, zero, lost = jax.jit(jax.vmap(call))(jnp.array(SCALES))
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(zero, jnp.full_like(zero, at_zero))
    assert jnp.isnan(lost).any()
    assert jnp.abs(first).max() > 1e-3


HOLED = jnp.asarray(40 * TALL[:6]).at[0].set(0).at[1, 2].set(0).at[2, 0].set(0)
AT_ZEROS = {
    "a cosine": (lambda rows: scores.cosine(rows, HOLED[1]), HOLED),
    "the cosine of a query": (lambda row: scores.cosine(HOLED, row), HOLED[1]),
    "the norm of a flow": (scores.flow_norm, HOLED),
    "the largest step": (lambda x: 1e3 * estimators.largest_step(x), HOLED),
    "a step limit": (lambda x: 1e6 * step_limit(PROMPT.replace(x=x, x_query=x[0])), HOLED[:, :2]),
    "a prompt in its own units": (
        lambda x: prompts.normalise(Prompt(x, x[:, 0], x[1], x[1, 1]))[0].x,
        HOLED,
    ),
    "a sensitivity": (
        lambda rows: alignment.distances(jnp.zeros(6), rows, OTHERS, OTHERS[1]).cosine,
        HOLED,
    ),
}


@pytest.mark.parametrize("name", AT_ZEROS)
def test_slopes_at_zeros_are_those_of_differences(name):
    call, at = AT_ZEROS[name]

    def total(values):
        rows = jnp.ravel(call(values))
        return jnp.sin(jnp.arange(1.0, 1 + rows.size)) @ rows

    slopes, totals = jax.jit(jax.grad(total))(at), jax.jit(jax.vmap(total))
    moves = 1e-4 * np.eye(at.size).reshape(-1, *at.shape)
    expected = (totals(at[None] + moves) - totals(at[None] - moves)).reshape(at.shape) / 2e-4
    assert np.isfinite(slopes).all()
    kept = slice(at.ndim - 1, None)  # a row of zeros has a slope by convention, 0
    np.testing.assert_allclose(slopes[kept], expected[kept], rtol=1e-5, atol=1e-7)


def test_what_is_brought_near_one_loses_no_bit_and_comes_back():
    values = jnp.asarray([[3e-200, -1e-210, 0.0], [0.0, 0.0, 0.0], [7e180, 1.0, -0.1]])
    scaled, exponents = scale_near_one(values, -1)
    largest = jnp.abs(scaled).max(1)
    assert largest[1] == 0
    assert ((largest[::2] >= 0.5) & (largest[::2] < 1)).all()
    assert (scale_by_power(scaled, exponents) == values).all()
