"""Integers, byte orders and single precision give what native float64 gives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import estimators, prompts, training
from lsa_lab.analyses import clipping, heads
from lsa_lab.models import constructions, linear_attention, moments, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks.linear import LinearTask, sample, sample_moments
from lsa_lab.theory import amplification, generalization, matching, optimum, risk, training_dynamics

I2, KEY = jnp.eye(2), jax.random.key(0)
PROMPT = Prompt(I2, jnp.ones(2), jnp.ones(2), jnp.ones(()))
PARAMS = linear_attention.init(KEY, 1, 2, 2)


def test_the_byte_order_does_not_matter():
    rng = np.random.default_rng(0)
    x, y, query = (rng.normal(size=shape).astype(">f4") for shape in ((6, 2), 6, 2))
    points = rng.normal(size=(9, 2)).astype(">f4")
    task = training.Training(
        lambda params, batch, value: ((params - value) ** 2).sum(),
        lambda key, value: value,
        lambda value: optax.sgd(0.1),
        3,
    )

    def compute(change):
        prompt = Prompt(change(x), change(y), change(query), change(y[0]))
        return (
            estimators.ridge(prompt, 0.1),
            prompts.second_moment(prompt),
            training.fit(task, change(x), KEY, per_run=change(x[:1])).params,
            gradient_matching.match(change(points), 2).indices,
        )

    swapped, expected = compute(np.asarray), compute(lambda a: np.asarray(a, "f4"))
    for found, value in zip(swapped, expected, strict=True):
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("count", [np.int64(4), jnp.array(4)])
def test_a_count_may_be_an_integer_of_any_kind(count):
    assert risk.ols(count, 2, 1.0) == risk.ols(4, 2, 1.0)
    optimum.one_layer(I2, I2, count, 0.0)
    found, expected = (estimators.sparse_posterior_mean(PROMPT, k // 4, 1, 1) for k in (count, 4))
    np.testing.assert_array_equal(found, expected)


PLAIN = np.array([[2, 1], [1, 1]])  # symmetric


@pytest.mark.parametrize(
    "call",
    [
        lambda cast: amplification.geometric_gain(cast(1), 70),
        lambda cast: training_dynamics.vector_field(1.5, cast(PLAIN), I2, 4),
        lambda cast: training_dynamics.solve(cast(np.arange(2)), I2, 4, 0.5, cast(PLAIN)).U,
        lambda cast: generalization.trajectory_bound(cast(PLAIN[None]), 1.5, 1.0, 4),
        lambda cast: generalization.measured_gap(cast(PLAIN[0]), cast(PLAIN[1]), 0.0, 1.5),
        lambda cast: risk.gradient_descent(cast(PLAIN[0]), np.array([0.5, 0.1]), 4, 0.1),
        lambda cast: estimators.descent_predictions(cast(PLAIN[0]), cast(PLAIN[1]), [0.3], [1, 2]),
        lambda cast: constructions.gradient_descent_plus_plus([0.1, 0.2], cast(PLAIN[0]), 2),
        lambda cast: constructions.prior_attention(cast(PLAIN[0]), np.array([0.5, 0.2])),
        lambda cast: constructions.preprocess_then_optimise(2, 2, cast(PLAIN[0]), [0.5, 0.2])[0],
        lambda cast: matching.moment_spread(cast(np.vander([1, 2, 3, 5], 2))),
        lambda cast: moments.layer_maps(PARAMS, cast(np.eye(3, dtype=int))),
        lambda cast: clipping.kept_rank(np.array([4, 10]), cast(np.array(0))),
    ],
)
def test_whole_numbers_are_as_good_as_floats(call):
    """Integers would truncate steps and weights to 0; floats of another byte order work too."""
    expected = jax.tree.leaves(call(np.float64))
    for kind in (np.asarray, partial(np.asarray, dtype=">f8")):
        for found, value in zip(jax.tree.leaves(call(kind)), expected, strict=True):
            np.testing.assert_array_equal(found, value)
            assert jnp.asarray(value).any()


def test_arrays_of_numpy_bring_no_warning_where_jax_has_no_float64():
    plain = np.eye(3)
    with jax.enable_x64(False):
        params = jax.tree.map(np.float64, PARAMS)
        for call in (
            lambda: linear_attention.forward(params, plain).stream,
            lambda: moments.layer_maps(params, (plain + 1) / 3),
            lambda: optimum.one_layer(plain, plain, 4, 0.1),
            lambda: constructions.one_step_optimum(plain, 4, 0.1).w_kq,
            lambda: training_dynamics.vector_field(1.5, plain, plain, 4).U,
            lambda: heads.remove_at_random(KEY, plain),
        ):
            assert call().dtype == np.float32


def test_constructions_keep_single_precision():
    def build():
        params = linear_attention.init(KEY, 3, 1, 2, dtype="f4")
        steep, config = constructions.preprocess_then_optimise(5, 3, jnp.array([0.3, 0.2], "f4"))
        path = transformer.forward(steep, jnp.ones((4, 6), "float32"), config)
        return constructions.scale_skip(params, 0.5), steep, layer_predictions(path)

    assert {leaf.dtype for leaf in jax.tree.leaves(jax.eval_shape(build))} == {np.dtype("f4")}


@pytest.mark.parametrize("name", ["covariance", "task_covariance"])
def test_a_singular_covariance_is_sampled(name):
    task = LinearTask(5, 2, **{name: jnp.array([[1.0, 1.0], [1.0, 1.0]])})
    batch, moments = jax.jit(lambda key: (sample(key, task), sample_moments(key, task)))(KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((batch, moments)))
    if name == "covariance":
        np.testing.assert_allclose(batch.x[:, 0], batch.x[:, 1], atol=1e-12)


def test_labels_of_any_size_are_normalised():
    small, normalise = (
        jax.tree.map(lambda leaf: leaf.astype("f4"), PROMPT),
        jax.jit(prompts.normalise),
    )
    for size in np.float32([1e-25, 1e25]):
        scaled, c = normalise(small.replace(y=size * small.y))
        np.testing.assert_allclose(scaled.y, small.y, rtol=1e-6)
        np.testing.assert_allclose(c, size, rtol=1e-6)


def test_the_bound_has_a_slope_where_nothing_is_updated():
    bound = jax.jit(jax.grad(lambda g: generalization.trajectory_bound(g, 1.0, 1.0, 4)))
    assert (bound(jnp.zeros((1, 2, 2))) == 0).all()
    assert jnp.isfinite(bound(jnp.ones((1, 2, 2)))).all()


def test_labels_that_are_tiny_keep_a_finite_step():
    """In float32 the squares of correlations of 1e-30 are 0; the limit is that of plain numbers."""
    small = jax.tree.map(lambda leaf: (1e-15 * leaf).astype("float32"), PROMPT)
    compute_limit = jax.jit(partial(estimators.preprocessed_step_limit, normalise=True))
    np.testing.assert_allclose(compute_limit(small), 1e30 * compute_limit(PROMPT), rtol=1e-5)
