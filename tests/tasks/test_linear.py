"""The law of linear prompts, and what impossible tasks are told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import mean_is_near
from lsa_lab.prompts import second_moment
from lsa_lab.tasks.linear import (
    LinearTask,
    sample,
    sample_batch,
    sample_moments,
    sample_moments_batch,
    sample_weights,
)

PROMPTS = 4000


def draw(task, count=PROMPTS, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.jit(jax.vmap(lambda key: sample(key, task)))(keys)


def weights_of(task, *active):
    keys = jax.random.split(jax.random.key(1), PROMPTS)
    return np.asarray(jax.jit(jax.vmap(lambda key: sample_weights(key, task, *active)))(keys))


@pytest.mark.parametrize(
    ("signal", "sparsity"), [("gaussian", 1), ("gaussian", 4), ("flat", 2), ("sphere", 2)]
)
def test_supports_have_exactly_s_entries_uniformly_spread(sparsity, signal):
    weights = weights_of(LinearTask(n=1, d=4, sparsity=sparsity, weight_std=0.5, signal=signal))
    assert ((weights != 0).sum(1) == sparsity).all()
    assert mean_is_near((weights != 0).astype(float), sparsity / 4)
    if signal == "flat":
        assert set(np.abs(weights[weights != 0])) == {0.5}
    lengths = (weights**2).sum(1)
    assert np.allclose(lengths, 0.25 * sparsity) == (signal != "gaussian")


def test_on_a_sphere_the_active_coordinates_share_the_length():
    weights = weights_of(LinearTask(1, 5, signal="sphere", weight_std=2.0), 3)
    np.testing.assert_allclose((weights**2).sum(1), 12)
    assert mean_is_near(weights[:, :3] ** 2, 4)
    assert not weights[:, 3:].any()


def test_second_moments_are_those_of_the_task():
    root = jax.random.normal(jax.random.key(2), (3, 3))
    covariance = root @ root.T + jnp.eye(3)
    task = LinearTask(5, 3, noise_std=0.3, covariance=covariance, prior_mean=jnp.arange(3.0))
    prompts = draw(task)
    outer = np.einsum("bi,bj->bij", prompts.x_query, prompts.x_query)
    assert mean_is_near(outer, np.asarray(covariance))
    assert not mean_is_near(outer, 1.15 * np.asarray(covariance))
    mean = jnp.arange(3.0)
    spread = float(jnp.trace(covariance) + mean @ covariance @ mean)  # E wwᵀ = I + w0 w0ᵀ
    assert mean_is_near(np.asarray(prompts.y_query) ** 2, spread)
    assert mean_is_near(np.asarray(prompts.y[:, 0]) ** 2, spread + 0.3**2)


def test_noise_reaches_the_labels_and_spares_the_target():
    @jax.jit
    def samples(noise_std):
        task, key = LinearTask(400, 2, noise_std=noise_std), jax.random.key(0)
        moments, queries, targets = sample_moments_batch(key, task, 2)
        batch = sample_batch(key, task, 2)
        return (sample(key, task), batch), (queries, targets), moments[-1, -1]

    quiet, noisy = (jax.device_get(samples(noise_std)) for noise_std in (0.0, 5.0))
    for plain, changed in zip(quiet[0], noisy[0], strict=True):
        np.testing.assert_array_equal(changed.x, plain.x)
        np.testing.assert_array_equal(changed.y_query, plain.y_query)
        squares = (changed.y - plain.y).ravel() ** 2
        assert mean_is_near(squares, 25.0)
        assert not mean_is_near(squares, 40.0)  # Control
    jax.tree.map(np.testing.assert_array_equal, noisy[1], quiet[1])
    assert (noisy[2] - quiet[2] > 15).all()


def test_the_spread_of_weights_is_about_their_known_mean():
    task = LinearTask(1, 2, weight_std=0.5, prior_mean=jnp.array([1.0, -2.0]))
    deviations = weights_of(task) - np.array([1.0, -2.0])
    assert mean_is_near(deviations, 0.0)
    assert mean_is_near(deviations**2, 0.25)
    assert not mean_is_near(deviations**2, 0.5)  # Control
    query = draw_flat(task)  # E (w·x)² = |w0|² + d weight_std²
    assert mean_is_near(query.y_query**2, 5.5)
    assert not mean_is_near(query.y_query**2, 6.5)  # Control


def draw_flat(task, active=None, count=PROMPTS):
    draw = jax.jit(lambda key, active: sample_batch(key, task, count, active))
    return jax.device_get(draw(jax.random.key(3), active))


def test_a_flat_batch_keeps_the_active_coordinates_and_counts_the_support_among_them():
    batch = draw_flat(LinearTask(3, 6, sparsity=2, signal="flat"), active=4)
    assert not batch.x[..., 4:].any()
    assert not batch.x_query[:, 4:].any()
    assert mean_is_near(batch.y_query**2, 2)  # two coordinates of variance 1, weights ± 1
    assert not mean_is_near(batch.y_query**2, 2.3)
    between = draw_flat(LinearTask(3, 6, sparsity=2, signal="flat"), active=4.7)  # of a schedule
    np.testing.assert_array_equal(between.x, batch.x)
    sparse = LinearTask(3, 6, sparsity=2)
    np.testing.assert_array_equal(weights_of(sparse, 4.7), weights_of(sparse, 4))


def test_a_task_that_drifts_forgets_at_its_rate_about_its_known_mean():
    mean, rho = np.array([1.0, -2.0]), 0.6
    task = LinearTask(4, 2, weight_std=0.5, prior_mean=jnp.array(mean), drift=rho)
    paths = (weights_of(task) - mean) / 0.5  # [P, n+1, d]
    for lag in range(3):
        products = paths[:, lag:] * paths[:, : 5 - lag]
        assert mean_is_near(products, rho**lag)
        assert not mean_is_near(products, rho**lag + 0.2)  # Control
    np.testing.assert_array_equal(paths[:, 0], (weights_of(task.replace(drift=None)) - mean) / 0.5)


@pytest.mark.parametrize("way", ["one", "batch"])
def test_every_label_has_the_task_of_its_time_and_the_query_its_own(way):
    rho, c = 0.7, 0.5
    task = LinearTask(3, 2, noise_std=0.3, drift=rho, correlation=c)
    batch = draw(task) if way == "one" else draw_flat(task)
    x = np.concatenate([batch.x, batch.x_query[:, None]], 1)
    y = np.concatenate([batch.y, batch.y_query[:, None]], 1)
    products = x[:, :, None] * x[:, None]  # E x_i x_j = c^|i-j| but for the query
    lags = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    expected = c**lags
    expected[3, :3] = expected[:3, 3] = 0
    assert mean_is_near(products.mean(3), expected)
    assert not mean_is_near(products.mean(3), c ** (2 * lags))  # Control
    inner = np.einsum("bid,bjd->bij", x, x)
    for rate, right in ((rho, True), (0.1, False)):  # the second is a control
        towards = (y[:, :, None] * y[:, None] - rate**lags * inner) * inner
        assert mean_is_near(towards, 0.09 * 2 * np.diag([1, 1, 1, 0])) == right


def test_at_a_drift_of_one_and_a_correlation_of_none_prompts_are_those_without():
    plain = LinearTask(5, 3, noise_std=0.3, covariance=2 * jnp.eye(3), task_covariance=jnp.eye(3))
    still = plain.replace(drift=1.0, correlation=0.0)
    for sampler in (draw, lambda task, count: draw_flat(task, 2, count)):
        pairs = [jax.tree.leaves(sampler(task, count=7)) for task in (plain, still)]
        for one, other in zip(*pairs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-14)


def test_what_has_no_drift_is_refused():
    for wrong in (dict(sparsity=1), dict(signal="sphere")):
        with pytest.raises(ValueError, match="drift is of dense Gaussian weights"):
            LinearTask(3, 2, drift=0.9, **wrong)
    for wrong in (dict(drift=1.5), dict(correlation=-0.1)):
        with pytest.raises(ValueError, match="lies in"):
            LinearTask(3, 2, **wrong)
        with pytest.raises(ValueError, match="such moments have another law"):
            sample_moments(jax.random.key(0), LinearTask(3, 2, **dict.fromkeys(wrong, 0.5)))


@pytest.mark.parametrize("active", [0, 7, -1, np.nan, np.arange(6) < 4])
def test_a_mask_and_a_number_beyond_the_coordinates_are_no_number_of_active_ones(active):
    for call in (
        sample,
        sample_weights,
        lambda key, task, active: sample_batch(key, task, 2, active),
    ):
        with pytest.raises(ValueError, match=r"active = .*it is one number from 1 to d = 6"):
            call(jax.random.key(0), LinearTask(3, 6), active)


@pytest.mark.parametrize("name", ["noise_std", "weight_std"])
def test_a_prompt_has_one_spread_of_each_kind(name):
    task = LinearTask(4, 4, **{name: np.ones(4)})
    for call in (sample, sample_weights, lambda *given: sample_batch(*given, 4)):
        with pytest.raises(ValueError, match=rf"{name} has shape \(4,\): it is one number; vmap"):
            call(jax.random.key(0), task)
    key, one = jax.random.key(0), LinearTask(4, 4)
    many = jax.vmap(lambda value: sample(key, one.replace(**{name: value})).y)  # Control
    assert many(np.ones(3)).shape == (3, 4)


def test_moments_of_a_flat_batch_are_those_of_its_tokens_where_it_draws_these():
    task = LinearTask(5, 3, noise_std=0.3, covariance=2 * jnp.eye(3), prior_mean=jnp.ones(3))
    batch = draw_flat(task, count=9)
    drawn_as_moments = jax.jit(lambda key: sample_moments_batch(key, task, 9))(jax.random.key(3))
    expected = jax.vmap(second_moment, out_axes=-1)(batch), batch.x_query.T, batch.y_query
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), drawn_as_moments, expected
    )


def test_moments_of_one_prompt_are_a_batch_of_one():
    task = LinearTask(50, 3, noise_std=0.3)
    single = jax.jit(lambda key: sample_moments(key, task))(jax.random.key(0))
    batch = jax.jit(lambda key: sample_moments_batch(key, task, 1))(jax.random.key(0))
    for a, b in zip(single, batch, strict=True):
        np.testing.assert_array_equal(a, b[..., 0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n": 0, "d": 3}, "n = 0"),
        ({"n": 2, "d": 0}, "d = 0"),
        ({"n": 2, "d": 3, "sparsity": 1.5}, "sparsity = 1.5: it is a whole number"),
        ({"n": True, "d": 3}, "n = True: it is a whole number"),
        ({"n": 2, "d": 3, "noise_std": np.array([0.1, -0.1])}, "is finite and not neg"),
        ({"n": 2, "d": 3, "noise_std": float("nan")}, "noise_std = nan"),
        ({"n": 2, "d": 3, "prior_mean": [1.0]}, "prior_mean is a list: give an array"),
        ({"n": 2, "d": 3, "signal": "dense"}, "'flat'"),
        ({"n": 2, "d": 3, "signal": "sphere", "task_covariance": np.eye(3)}, "turn a sphere"),
        ({"n": 2, "d": 3, "sparsity": 1, "task_covariance": np.eye(3)}, "dense"),
    ],
)
def test_impossible_tasks_are_refused_with_the_key_and_the_value(fields, words):
    with pytest.raises(ValueError, match=words):
        LinearTask(**fields)


def test_signs_are_the_signs_of_the_same_prompts():
    real = LinearTask(6, 3, noise_std=0.5)
    signs = real.replace(labels="signs")
    for batch, classes in ((draw(real), draw(signs)), (draw_flat(real), draw_flat(signs))):
        np.testing.assert_array_equal(classes.x, batch.x)
        np.testing.assert_array_equal(classes.y, np.sign(batch.y))
        np.testing.assert_array_equal(classes.y_query, np.sign(batch.y_query))
    with pytest.raises(ValueError, match="only moments of real labels"):
        sample_moments(jax.random.key(0), signs)
    with pytest.raises(ValueError, match="choose 'real' or 'signs'"):
        LinearTask(2, 2, labels="sign")
