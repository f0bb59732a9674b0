"""The estimators against scikit-learn and plain numpy, at their limits, and what they refuse."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seed_and, seeds
from lsa_lab import estimators
from lsa_lab.estimators import bayes
from lsa_lab.models import constructions, linear_attention, trace
from lsa_lab.prompts import Prompt, tokens

equivariant = estimators.rotation_equivariant_posterior_mean
flat, variance = estimators.flat_posterior_mean, estimators.gaussian_predictive_variance
ols, ridge, lasso = map(jit_numpy, (estimators.ols, estimators.ridge, estimators.lasso))
descend, largest_step = jit_numpy(estimators.gradient_descent), jit_numpy(estimators.largest_step)
descend_plus_plus = jit_numpy(estimators.gradient_descent_plus_plus)
run_network = jit_numpy(
    lambda matrices, prompt: trace.layer_predictions(
        linear_attention.forward(constructions.preconditioned(matrices), tokens(prompt))
    )
)
BY_NAME = {
    "ols": estimators.ols,
    "ridge": lambda prompt: estimators.ridge(prompt, 0.1),
    "lasso": lambda prompt: estimators.lasso(prompt, 0.1),
    "gradient_descent": lambda prompt: estimators.gradient_descent(prompt, jnp.full(3, 0.1)),
    "gradient_descent_plus_plus": lambda prompt: estimators.gradient_descent_plus_plus(
        prompt, jnp.full(3, 0.1), jnp.full(3, 0.2)
    ),
    "mixed": lambda prompt: estimators.mixed_gradient_descent(
        prompt, jnp.full(3, 0.1), jnp.full(3, 0.2)
    ),
    "preprocessed": lambda prompt: estimators.preprocessed_gradient_descent(prompt, 0.1, 3),
    "normalised": lambda prompt: estimators.preprocessed_gradient_descent(
        prompt, 0.1, 3, normalise=True
    ),
    "closed form": lambda prompt: estimators.descent_predictions(
        *estimators.descent_modes(prompt), [0.1, 0.2], [3, 10]
    ),
    "gaussian": lambda prompt: estimators.gaussian_posterior_mean(prompt, 1.0, 0.1),
    "variance": lambda prompt: estimators.gaussian_predictive_variance(prompt, 1.0, 0.1),
    "sparse": lambda prompt: estimators.sparse_posterior_mean(prompt, 2, 1.0, 0.1),
}


@partial(jax.jit, static_argnames=("n", "d", "rank"))
def draw(seed, n, d, rank):
    """X of a given rank, its singular values between √n/2 and 2√n; labels with noise."""
    keys = jax.random.split(jax.random.key(seed), 5)
    left = jnp.linalg.qr(jax.random.normal(keys[0], (n, rank)))[0]
    right = jnp.linalg.qr(jax.random.normal(keys[1], (d, rank)))[0]
    spectrum = n**0.5 * jax.random.uniform(keys[2], (rank,), minval=0.5, maxval=2.0)
    x = (left * spectrum[None]) @ right.T
    y = x @ jnp.ones(d) + jax.random.normal(keys[3], (n,))
    return Prompt(x, y, jax.random.normal(keys[4], (d,)), jnp.zeros(()))


def reference(model, prompt):
    return model.fit(np.array(prompt.x), np.array(prompt.y)).coef_


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4), (8, 6, 3)])
@seeds
def test_least_squares_is_scikit_learns(n, d, rank, seed):
    from sklearn.linear_model import LinearRegression

    prompt = draw(seed, n, d, rank)
    model = LinearRegression(fit_intercept=False)
    np.testing.assert_allclose(ols(prompt), reference(model, prompt), atol=1e-10)


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4), (8, 6, 3)])
@seed_and(penalty=(0.01, 5.0))
def test_ridge_is_scikit_learns(n, d, rank, seed, penalty):
    from sklearn.linear_model import Ridge

    prompt = draw(seed, n, d, rank)
    model = Ridge(alpha=n * penalty, fit_intercept=False, solver="svd")
    ours = ridge(prompt, penalty)
    np.testing.assert_allclose(ours, reference(model, prompt), atol=1e-10)


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4), (8, 6, 3)])
def test_ridge_without_penalty_is_least_squares(n, d, rank):
    prompt = draw(0, n, d, rank)
    without = jit_numpy(lambda prompt: estimators.ridge(prompt, 0.0))(prompt)
    np.testing.assert_array_equal(without, ols(prompt))
    np.testing.assert_allclose(ridge(prompt, 1e-6), ols(prompt), atol=1e-4)


def test_a_penalty_that_is_zero_in_its_precision_is_none():
    single = jax.tree.map(lambda leaf: leaf.astype("float32"), draw(0, 8, 6, 3))
    np.testing.assert_array_equal(estimators.ridge(single, 1e-50), estimators.ols(single))


@pytest.mark.parametrize("penalty", [1e-6, 1e-3])
def test_lasso_finds_its_support_among_many_more_columns_than_labels(penalty):
    @jit_numpy
    @jax.vmap
    def solve(seed):
        prompt = draw(seed, 5, 16, 5)
        weights = estimators.lasso(prompt, penalty)
        return prompt.y, weights, estimators.lasso_duality_gap(prompt, weights, penalty)

    labels, weights, gaps = solve(np.arange(20))
    assert np.max(gaps / np.sum(labels**2, axis=1)) < 1e-14
    assert np.max(np.sum(weights != 0, axis=1)) <= 5


def test_the_derivative_of_lasso_is_the_slope_of_its_path():
    prompt, step = jax.device_get(draw(0, 12, 5, 5)), 1e-3
    penalty = 0.5 * np.max(np.abs(prompt.x.T @ prompt.y)) / 12
    before, after = (lasso(prompt, penalty + sign * step) for sign in (-1, 1))
    slope = jax.jit(jax.jacobian(lambda penalty: estimators.lasso(prompt, penalty)))(penalty)
    assert 0 < np.count_nonzero(slope) < 5  # the path is linear between changes of its support
    np.testing.assert_allclose(slope, (after - before) / (2 * step), atol=1e-10)


@pytest.mark.parametrize(("n", "d", "rank"), [(12, 5, 5), (4, 7, 4)])
@seeds
def test_the_largest_step_clears_the_steepest_direction_at_once(n, d, rank, seed):
    prompt = draw(seed, n, d, rank)
    step, solution = largest_step(prompt.x), ols(prompt)
    steepest = np.linalg.svd(np.array(prompt.x))[2][0]

    def errors(share):  # along the steepest direction, after each step
        return (descend(prompt, np.full(200, share * step)) - solution[None]) @ steepest

    np.testing.assert_allclose(errors(1.0)[1:], 0, atol=1e-10)
    first, last = errors(1.9)[0], errors(1.9)[-1]
    assert abs(last) <= 1e-6 * abs(first) + 1e-10
    assert abs(errors(2.1)[-1]) >= 1e6 * abs(first)


def test_nothing_limits_the_step_where_nothing_moves():
    assert estimators.largest_step(jnp.zeros((3, 2))) == jnp.inf


@seeds
def test_preconditioners_stand_as_given_and_a_layer_transposes_them(seed):
    prompt, rng = jax.device_get(draw(seed, 12, 4, 4)), np.random.default_rng(seed)
    step_sizes, matrices = rng.uniform(size=3), rng.normal(size=(3, 4, 4))
    path = descend(prompt, step_sizes, matrices)
    weights, x, y = np.zeros(4), prompt.x, prompt.y
    for t in range(3):
        weights = weights + step_sizes[t] * matrices[t] @ x.T @ (y - x @ weights) / 12
        np.testing.assert_allclose(path[t + 1], weights, atol=1e-10 * (1 + np.abs(path).max()))
    network = run_network(step_sizes[:, None, None] * matrices, prompt)
    turned = descend(prompt, step_sizes, matrices.transpose(0, 2, 1))
    scale = 1 + np.abs(network).max()
    np.testing.assert_allclose(turned @ prompt.x_query, network, atol=1e-10 * scale)
    assert np.max(np.abs(path @ prompt.x_query - network)) > 1e-6


@seeds
def test_descent_plus_plus_contracts_the_spectrum_as_it_goes(seed):
    prompt = draw(seed, 12, 4, 4)
    step_sizes, gammas = 0.3 * np.random.default_rng(seed).uniform(size=(2, 6))
    path = descend_plus_plus(prompt, step_sizes, gammas)
    x, y = np.array(prompt.x), np.array(prompt.y)
    values, basis = np.linalg.eigh(x.T @ x / 12)
    current, left = values, np.ones(4)
    solution = np.linalg.lstsq(x, y)[0]
    for t in range(6):
        left = left * (1 - step_sizes[t] * current)
        current = current * (1 - gammas[t] * current) ** 2
        stated = basis @ ((1 - left) * (basis.T @ solution))
        np.testing.assert_allclose(path[t + 1], stated, atol=1e-10)


@pytest.mark.parametrize("normalise", [False, True])
def test_preprocessed_descent_diverges_beyond_its_step_limit_only(normalise):
    prompt = draw(0, 12, 4, 4)

    @jit_numpy
    def end(share):
        step_size = share * estimators.preprocessed_step_limit(prompt, normalise=normalise)
        how = dict(step_size=step_size, num_steps=1000, normalise=normalise)
        return estimators.preprocessed_gradient_descent(prompt, **how)[-1]

    assert np.abs(end(0.98)) < 1e2
    assert np.abs(end(1.02)) > 1e6


def test_the_lasso_of_columns_that_are_nearly_one_goes_on_until_it_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 1)) + 0.1 * rng.normal(size=(20, 40))
    prompt = Prompt(x, rng.normal(size=20), x[0], np.zeros(()))
    gap = jit_numpy(estimators.lasso_duality_gap)(prompt, lasso(prompt, 0.01), 0.01)
    assert gap < 1e-13 * (prompt.y @ prompt.y)  # after ten rounds a fifth of the loss is left


@pytest.mark.parametrize("exponent", [-70, -60, 70])
def test_the_lasso_has_the_unit_of_its_labels(exponent):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 60)).astype(np.float32)
    y = x[:, :3].sum(1) + np.float32(0.1) * rng.normal(size=20).astype(np.float32)
    prompt, unit = Prompt(x, y, x[0], y[0]), np.float32(2.0**exponent)
    ours = lasso(prompt.replace(y=unit * y), np.float32(0.05) * unit) / unit
    np.testing.assert_allclose(ours, lasso(prompt, np.float32(0.05)), atol=1e-5)


def test_no_rounding_makes_a_duality_gap_negative():
    x, y, weights = jnp.ones((1, 1)), jnp.array([3.7]), jnp.array([3.0])  # y - w is .7 + 2e-16
    gap = estimators.lasso_duality_gap(Prompt(x, y, x[0], y[0]), weights, 0.7)
    assert gap == 0


@pytest.mark.parametrize(("n", "d"), [(4, 6), (9, 3)])
def test_the_best_linear_equivariant_rule_is_that_of_a_gaussian_of_its_length(n, d):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    prompt = Prompt(*map(jnp.asarray, (x, y, x[0], 0.0)))
    squared_length, noise_std = 2.5, 0.7
    covariance = squared_length / d * np.eye(d)
    of_labels = x @ covariance @ x.T + noise_std**2 * np.eye(n)
    expected = covariance @ x.T @ np.linalg.solve(of_labels, y)
    ours = estimators.rotation_equivariant_ridge(prompt, squared_length, noise_std)
    np.testing.assert_allclose(ours, expected, rtol=1e-9)
    of_unit = estimators.rotation_equivariant_ridge(prompt, squared_length / d, noise_std)
    assert abs(of_unit - expected).max() > 1e-2  # Control: the length of each weight


@pytest.mark.parametrize("name", BY_NAME)
def test_each_can_be_batched_compiled_and_differentiated_in_both_precisions(name):
    rule, step = BY_NAME[name], 1e-5
    run, many = jit_numpy(rule), jit_numpy(jax.vmap(rule))
    slopes = jit_numpy(jax.grad(lambda prompt: jnp.sum(rule(prompt))))
    prompts = jax.device_get([draw(seed, 6, 4, 4) for seed in range(3)])
    first, _, one = prompts
    np.testing.assert_allclose(
        many(jax.tree.map(lambda *e: np.stack(e), *prompts))[2], run(one), atol=1e-12
    )
    ends = [jax.tree.map(lambda leaf, s=s: leaf + s * step, one) for s in (1, -1, 0)]
    ahead, behind, _ = many(jax.tree.map(lambda *e: np.stack(e), *ends))
    along = sum(np.sum(leaf) for leaf in jax.tree.leaves(slopes(one)))
    np.testing.assert_allclose(along, np.sum(ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)
    # Single precision stays, and empty columns and labels are survived.
    single = run(jax.tree.map(lambda leaf: leaf.astype(np.float32), first))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, run(first), rtol=1e-3, atol=1e-3)
    empty = first.replace(x=first.x * (np.arange(4) > 0), y=0 * first.y)
    if name != "variance":
        assert not run(empty).any()
    if name not in ("ols", "lasso"):  # where the rank changes, they have no derivative
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes(empty)))


def test_supports_in_chunks_are_each_counted_once():
    chunks, real = bayes._supports(13, 3)
    assert len(chunks) == 2
    rows = chunks.swapaxes(1, 2)[real].tolist()
    assert [*map(tuple, rows)] == list(itertools.combinations(range(13), 3))


def test_many_supports_are_refused_with_their_number():
    prompt = draw(0, 6, 24, 6)
    with pytest.raises(ValueError, match="735471 supports of 8 among 24"):
        estimators.sparse_posterior_mean(prompt, 8, 1.0, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: estimators.ridge(p, -0.1), "penalty = -0.1: expected a finite number >= 0"),
        (lambda p: estimators.lasso(p, float("nan")), "penalty = nan"),
        (lambda p: estimators.lasso(p, jnp.ones(3)), r"penalty has shape \(3,\).*vmap"),
        (lambda p: estimators.lasso_duality_gap(p, p.x_query, -1.0), "penalty = -1.0"),
        (lambda p: estimators.gaussian_posterior_mean(p, 1.0, 0.0), "noise_var = 0.0.*use ols"),
        (lambda p: variance(p, 0.0, 1.0), "signal_var = 0.0"),
        (lambda p: estimators.sparse_posterior_mean(p, 2, 1.0, 0.0), "noise_var = 0.0.*use ols"),
        (lambda p: estimators.sparse_posterior_mean(p, 1.5, 1.0, 1.0), "sparsity = 1.5: it is a"),
        (lambda p: flat(p, 1, 1.0, jnp.array(-0.1)), "noise_std = -0.1: a standard deviation"),
        (lambda p: equivariant(p, 1, -1.0, 0.1), "weight_std = -1.0: a standard deviation"),
        (lambda p: equivariant(p, 1, 0.0, 0.1), "weight_std = 0.0: expected a finite number > 0"),
        (lambda p: equivariant(p, 1, 1.0, 0), "noise_std = 0.0.*divides by 0"),
        (lambda p: flat(p, 1, 1.0, 0.0), "noise_std = 0.0.*by 0"),
        (lambda p: estimators.rotation_equivariant_ridge(p, 0, 0.1), "squared_length = 0.0"),
        (lambda p: estimators.rotation_equivariant_ridge(p, -1.0, 0.1), "squared_length = -1.0"),
        (lambda p: estimators.rotation_equivariant_ridge(p, 1.0, -0.1), "noise_std = -0.1"),
        (
            lambda p: variance(p, 1.0, 1.0, prior_covariance=jnp.triu(jnp.ones((4, 4)))),
            "prior_covariance is not symmetric",
        ),
        (
            lambda p: estimators.descent_predictions(p.x_query, p.x_query, [np.nan], [4]),
            "step_sizes",
        ),
        (
            lambda p: estimators.descent_predictions(p.x_query, p.x_query, [0.1], np.array([-4])),
            "numbers of steps are whole and not negative",
        ),
        (lambda p: estimators.spike_and_slab_posterior_mean(p, 0.5, 1.0, 1.0), "orthogonal"),
        (lambda p: estimators.gradient_descent(p, [0.1, np.inf]), "step_sizes holds 1 NaN"),
        (lambda p: estimators.preprocessed_gradient_descent(p, 0.0, 3), "step_size = 0.0"),
        (lambda p: estimators.ols(p.replace(x=p.x.at[2, 1].set(np.nan))), r"x holds 1 .*\(2, 1\)"),
        (lambda p: estimators.ols(p.replace(y=p.y.at[0].set(np.inf))), r"y holds 1 .*\(0,\)"),
        (lambda p: estimators.largest_step(p.x.at[2, 1].set(np.nan)), r"x holds 1 .*\(2, 1\)"),
        (lambda p: estimators.ols(p.replace(x=p.x.astype(int))), "one floating dtype"),
        (lambda p: estimators.ols(p.replace(x=p.x[:0], y=p.y[:0])), "at least one demonstration"),
        (
            lambda p: estimators.gaussian_posterior_mean(p, 1.0, 1.0, prior_covariance=-jnp.eye(4)),
            "not positive definite",
        ),
    ],
)
def test_values_without_a_meaning_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(draw(0, 6, 4, 4))


@pytest.mark.parametrize(
    "call",
    [
        estimators.ols,
        lambda p: estimators.ridge(p, 0.1),
        lambda p: estimators.lasso(p, 0.1),
        lambda p: estimators.largest_step(p.x),
        estimators.descent_modes,
        estimators.preprocessed_step_limit,
        lambda p: variance(p, 1.0, 1.0),
        lambda p: equivariant(p, 1, 1.0, 1.0),
    ],
)
def test_no_matrix_is_factored_in_half_precision(call):
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), draw(0, 6, 4, 4))
    with pytest.raises(ValueError, match="no matrix is factored in it; give float32 or float64"):
        call(half)


def test_counts_and_spreads_may_be_numbers_of_numpy_and_jax():
    prompt = draw(0, 6, 4, 4)
    sparse = estimators.sparse_posterior_mean
    ours, expected = (sparse(prompt, count, 1.0, 0.1) for count in (jnp.array(2), 2))
    np.testing.assert_array_equal(ours, expected)
    ours, expected = (equivariant(prompt, 2, std, 0.1) for std in (np.int64(2), 2.0))
    np.testing.assert_array_equal(ours, expected)
    single, one = jax.tree.map(lambda leaf: leaf.astype("float32"), prompt), np.float64(1)
    for signal in ("gaussian", "flat"):
        assert equivariant(single, 2, one, one, signal=signal).dtype == np.float32
    turned = estimators.gradient_descent(single, np.ones(1), np.eye(4)[None])
    np.testing.assert_array_equal(turned, estimators.gradient_descent(single, np.ones(1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 6])
def test_with_ever_less_noise_rules_that_commute_with_rotations_go_to_the_least_norm(n, dtype):
    # where no demonstration reaches, w and its mirror image are as likely
    prompt = draw(0, n, 4, 2)  # of rank 2, whatever n
    prompt = prompt.replace(y=prompt.x @ jnp.full(4, 0.5))  # of length 1
    expected = np.linalg.pinv(prompt.x) @ prompt.y
    single = jax.tree.map(lambda leaf: leaf.astype(dtype), prompt)
    for signal, noise_std in itertools.product(("gaussian", "flat"), (1e-4, 1e-6)):
        rule = estimators.rotation_equivariant_posterior_mean
        mean = rule(single, 2, 1.0, noise_std, signal=signal)
        np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n", "sparsity"), [(1, 2), (2, 3), (3, 3)])
def test_supports_that_each_explain_all_are_told_apart_by_the_size_of_their_weights(n, sparsity):
    prompt = jax.tree.map(lambda leaf: leaf.astype("float32"), draw(1, n, 4, n))
    x, y, noise_var = *(np.asarray(leaf, float) for leaf in (prompt.x, prompt.y)), 1e-8
    evidence = []
    supports = list(itertools.combinations(range(4), sparsity))
    weights = np.zeros((len(supports), 4))
    for own, support in zip(weights, supports, strict=True):
        columns = x[:, support]
        covariance = columns @ columns.T + noise_var * np.eye(n)
        own[list(support)] = columns.T @ np.linalg.solve(covariance, y)
        evidence.append(-(y @ np.linalg.solve(covariance, y)) / 2)
        evidence[-1] -= np.linalg.slogdet(covariance)[1] / 2
    share = np.exp(evidence - np.max(evidence))
    mean = estimators.sparse_posterior_mean(prompt, sparsity, 1.0, noise_var)
    np.testing.assert_allclose(mean, share / share.sum() @ weights, rtol=1e-4, atol=1e-4)
