"""The distribution of linear prompts: weights, noise, drift, labels; a theorem has the moments."""

import jax
import numpy as np
import pytest

from draws import draw_covariance, jit_numpy, lags, mean_is_near
from lsa_lab.tasks.linear import (
    LinearTask,
    sample,
    sample_batch,
    sample_moments_batch,
    sample_weights,
)

PROMPTS = 4000
KEYS = jax.random.split(jax.random.key(1), PROMPTS)


@jit_numpy
def draw(task):
    return jax.vmap(lambda key: sample(key, task))(KEYS)


@jit_numpy
def draw_batch(task):
    return sample_batch(jax.random.key(3), task, PROMPTS)


@jit_numpy
def draw_weights(task):
    return jax.vmap(lambda key: sample_weights(key, task))(KEYS)


SAMPLERS = pytest.mark.parametrize("sampler", [draw, draw_batch], ids=["single", "batch"])


@pytest.mark.parametrize(
    ("signal", "sparsity"), [("gaussian", 1), ("gaussian", 4), ("flat", 2), ("sphere", 2)]
)
def test_supports_have_exactly_s_entries_uniformly_spread(sparsity, signal):
    weights = draw_weights(LinearTask(n=1, d=4, sparsity=sparsity, weight_std=0.5, signal=signal))
    assert ((weights != 0).sum(1) == sparsity).all()
    assert mean_is_near((weights != 0).astype(float), sparsity / 4)
    if signal == "flat":
        assert set(np.abs(weights[weights != 0])) == {0.5}
    lengths = (weights**2).sum(1)
    assert np.allclose(lengths, 0.25 * sparsity) == (signal != "gaussian")


@SAMPLERS
def test_second_moments_are_those_of_the_task(sampler):
    covariance = draw_covariance(np.random.default_rng(2), 3, 1, 4)
    mean = np.arange(3.0)
    task = LinearTask(5, 3, noise_std=0.3, covariance=covariance, prior_mean=mean, weight_std=0.5)
    batch = sampler(task)
    spread = 0.25 * np.trace(covariance) + mean @ covariance @ mean  # E wwᵀ = I/4 + w_0 w_0ᵀ
    for factor, is_right in ((1, True), (1.15, False)):  # the second is a control
        outer = np.einsum("bi,bj->bij", batch.x_query, batch.x_query)
        assert mean_is_near(outer, factor * covariance) == is_right
        assert mean_is_near(batch.y_query**2, factor * spread) == is_right
    assert mean_is_near(batch.y[:, 0] ** 2, spread + 0.3**2)


def test_noise_reaches_the_labels_and_spares_the_target():
    @jit_numpy
    def draw_all(noise_std):
        task, key = LinearTask(400, 2, noise_std=noise_std), jax.random.key(0)
        moments, *targets = sample_moments_batch(key, task, 2)
        return (sample(key, task), sample_batch(key, task, 2)), targets, moments[-1, -1]

    quiet, noisy = (draw_all(noise_std) for noise_std in (0.0, 5.0))
    for plain, changed in zip(quiet[0], noisy[0], strict=True):
        np.testing.assert_array_equal(changed.x, plain.x)
        np.testing.assert_array_equal(changed.y_query, plain.y_query)
        squares = (changed.y - plain.y).ravel() ** 2
        assert mean_is_near(squares, 25.0)
        assert not mean_is_near(squares, 40.0)  # Control
    jax.tree.map(np.testing.assert_array_equal, noisy[1], quiet[1])
    assert (noisy[2] - quiet[2] > 15).all()


@SAMPLERS
def test_every_label_has_the_weights_of_its_time(sampler):
    rho, c, times = 0.7, 0.5, lags(4)
    batch = sampler(LinearTask(3, 2, noise_std=0.3, drift=rho, correlation=c))
    x = np.concatenate([batch.x, batch.x_query[:, None]], 1)
    y = np.concatenate([batch.y, batch.y_query[:, None]], 1)
    products = x[:, :, None] * x[:, None]  # E x_i x_j = c^|i-j|, and 0 for the query
    expected = c**times
    expected[3, :3] = expected[:3, 3] = 0
    assert mean_is_near(products.mean(3), expected)
    assert not mean_is_near(products.mean(3), c ** (2 * times))  # Control
    inner = np.einsum("bid,bjd->bij", x, x)
    for rate, is_right in ((rho, True), (0.1, False)):  # the second is a control
        residuals = (y[:, :, None] * y[:, None] - rate**times * inner) * inner
        assert mean_is_near(residuals, 0.09 * 2 * np.diag([1, 1, 1, 0])) == is_right


@SAMPLERS
def test_a_drift_of_one_and_a_correlation_of_zero_change_nothing_and_signs_are_of_the_same(sampler):
    plain = LinearTask(5, 3, noise_std=0.3, covariance=2 * np.eye(3), task_covariance=np.eye(3))
    changed = plain.replace(drift=1.0, correlation=0.0, labels="signs")
    batch, classes = map(sampler, (plain, changed))
    np.testing.assert_allclose(classes.x, batch.x, atol=1e-14)
    np.testing.assert_array_equal(classes.y, np.sign(batch.y))
    np.testing.assert_array_equal(classes.y_query, np.sign(batch.y_query))


@pytest.mark.parametrize("name", ["noise_std", "weight_std"])
def test_many_spreads_need_vmap(name):
    key, task = jax.random.key(0), LinearTask(4, 4)
    many = task.replace(**{name: np.ones(4)})
    for call in (sample, sample_weights, lambda *given: sample_batch(*given, 4)):
        with pytest.raises(ValueError, match=rf"{name} has shape .*vmap"):
            call(key, many)
    batch = jax.vmap(lambda value: sample(key, task.replace(**{name: value})).y)  # Control
    assert jax.eval_shape(batch, np.ones(3)).shape == (3, 4)
