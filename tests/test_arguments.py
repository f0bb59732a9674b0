"""What public functions refuse before they compute, and small numbers that they keep."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import prompts, training
from lsa_lab.analyses import clipping, heads, probes
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.estimators import (
    bayes,
    descent_predictions,
    preprocessed_step_limit,
    recursive_ridge,
    ridge,
    rotation_equivariant_posterior_mean,
    sparse_posterior_mean,
)
from lsa_lab.lm import readings, text
from lsa_lab.lm.config import Config
from lsa_lab.lm.sentences import Sentences
from lsa_lab.lm.templates import Template
from lsa_lab.models import constructions, effective, linear_attention, moments, transformer
from lsa_lab.prompts import Prompt
from lsa_lab.selection import baselines, diversity, gradient_matching, scores
from lsa_lab.tasks import pools
from lsa_lab.tasks.linear import LinearTask, sample, sample_moments
from lsa_lab.tasks.pools import PoolTask
from lsa_lab.theory import (
    amplification,
    generalization,
    matching,
    optimum,
    risk,
    training_dynamics,
)

I2 = jnp.eye(2)
SKEW = jnp.array([[1.0, 0.5], [0.0, 1.0]])
PROMPT = Prompt(I2, jnp.ones(2), jnp.ones(2), jnp.ones(()))
SINGLE = jax.tree.map(lambda leaf: leaf.astype("float32"), PROMPT)
KEY = jax.random.key(0)
PARAMS = linear_attention.init(KEY, 1, 2, 2)
TOKENS = jnp.ones((3, 3))
BIG_ENDIAN = np.ones((3, 3), ">f8")
POOL = pools.sample(KEY, PoolTask(m=4, d=2))
SENTENCES = Sentences("four", ("a", "b", "c", "d"), np.array([0, 1, 0, 1]), ("bad", "good"))


forward = partial(linear_attention.forward, PARAMS)
lm_config = partial(Config, 2, 2, 2, 4, 8, 16, 10, 5)


def fit(key=None, optimizer=None, steps=2, **options):
    task = training.Training(
        lambda params, batch: (params**2).sum(),
        lambda key: jnp.ones(()),
        optimizer or optax.sgd(0.1),
        steps,
    )
    return training.fit(task, jnp.ones(1), KEY if key is None else key, **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: optimum.one_layer(I2, I2, np.int64(0), 0.0), "n = 0: it is at least 1"),
        (lambda: optimum.one_layer(I2, I2, 10.5, 0.0), "n = 10.5: it is a whole number"),
        (lambda: optimum.one_layer(SKEW, I2, 4, 0.0), "covariance is not symmetric"),
        (lambda: optimum.one_layer(I2, I2, 4, np.float32(-1)), "is finite and not"),
        (lambda: constructions.one_step_optimum(I2, 4, -50), "noise_var = -50"),
        (lambda: LinearTask(4, 2, covariance=-I2), "covariance has the eigenvalue -1"),
        (lambda: LinearTask(4, 2, task_covariance=SKEW), "task_covariance is not symmetric"),
        (lambda: LinearTask(4, 2, noise_std=jnp.array(-1.0)), "is finite"),
        (lambda: LinearTask(4.5, 2), "n = 4.5: it is a whole number"),
        (lambda: clipping.truncate(I2, jnp.array([0.0, 0.5])), "it is one number; vmap"),
        (lambda: clipping.kept_rank(np.nan, 0.1), "full_rank is nan"),
        (lambda: probes.fit(jnp.ones((40, 2)), jnp.ones((40, 1)), penalty=-0.9), "penalty = -0.9"),
        (lambda: bayes.discrete_posterior_means(PROMPT, jnp.zeros((0, 2)), 1.0), "no rows"),
        (lambda: bayes.discrete_posterior_means(PROMPT, I2, 0.0), "nearest task"),
        (lambda: effective.attention(I2, I2, gate=np.ones(3)), "gate"),
        (lambda: effective.attention(I2, I2, step=np.ones(3)), "step"),
        (lambda: effective.attention(I2, I2, removed=np.ones((2, 3))), "removed"),
        (lambda: effective.attention(I2, I2, written=I2), "written"),
        (lambda: effective.attention(I2, I2, values_per_token=2), "keys"),
        (lambda: effective.attention(I2[None], I2), "queries"),
        (lambda: PoolTask(m=4, d=2, shares=(float("nan"), 1.0)), "add up to 1"),
        (lambda: PoolTask(m=4, d=2, shares=()), "add up to 1"),
        (lambda: SENTENCES.split(0, -1, 2), "whole numbers from 0 on"),
        (lambda: SENTENCES.split(0, 1.5), "whole numbers from 0 on"),
        (lambda: SENTENCES.only("bad", "bad"), "name two or more"),
        (lambda: SENTENCES.cut(0), "a text keeps one or more"),
        (lambda: readings.shifted(np.ones((2, 3)), 1.0), r"expected \[B, 2\]"),
        (lambda: readings.affine(np.ones((2, 2)), np.nan, 0.0), "finite numbers"),
        (lambda: readings.affine_shares([1, 2, np.nan], [1, 2, 3]), "leave them out"),
        (lambda: lm_config(norm="foo"), "supported are rms, layer"),
        (lambda: lm_config(norm_epsilon=jnp.nan), "a number above 0"),
        (lambda: lm_config(rotary_scaling=(8.0, 4.0, 4.0, 64.0)), "low below high"),
        (lambda: linear_attention.init(KEY, 0, 1, 2), "num_layers = 0"),
        (lambda: linear_attention.init(KEY, 1, 0, 2), "num_heads = 0"),
        (lambda: linear_attention.init(KEY, 1, 1, 2, jnp.nan), "scale = nan"),
        (lambda: transformer.Config(3, 1, 1, 2, init_scale=jnp.inf), "positive and finite"),
        (lambda: forward(TOKENS, head_mask=jnp.array([[1, jnp.nan]])), "head_mask holds 1 NaN"),
        (lambda: forward(TOKENS.astype(int)), "tokens are int64"),
        (lambda: forward(TOKENS.astype("float32")), "tokens are float32 and weights float64"),
        (lambda: ridge(PROMPT, "0.1"), "expected a number, not text"),
        (lambda: recursive_ridge(SINGLE, 1e-50), "penalty = 1e-50, which is 0.0 in float32"),
        (lambda: sparse_posterior_mean(SINGLE, 1, 1e-50, 1.0), "signal_var = 1e-50, which is 0.0"),
        (lambda: bayes.discrete_posterior_means(SINGLE, SINGLE.x, 1e-50), "which is 0.0 in float"),
        (
            lambda: rotation_equivariant_posterior_mean(SINGLE, 1, 1.0, 1e-25),
            "noise_std² = 1.*is 0.0 in float32",
        ),
        (lambda: ridge(SINGLE, 1e-39), "penalty = 1e-39, which is too small for float32"),
        (lambda: ridge(SINGLE, 1e50), "penalty = 1e.50, which is inf in float32"),
        (lambda: diversity.determinantal(SINGLE.x[:, :1], 2, 1e-50), "their determinant is 0"),
        (lambda: fit(steps=1e3), "steps = 1000.0: it is a whole number"),
        (lambda: fit(key=0), r"give a random key, jax.random.key\(0\)"),
        (lambda: fit(optimizer="adam"), r"give one of optax, optax.adam\(1e-3\)"),
        (lambda: fit(optimizer=optax.adam), r"give one of optax, optax.adam\(1e-3\)"),
        (lambda: fit(per_run=jnp.ones(())), r"with per_run it is values -> optax.adam\(values\)"),
        (lambda: baselines.stratified(KEY, I2, 1), r"labels are \[m\], one for each candidate"),
        (lambda: diversity.leverage(I2.astype(jnp.bfloat16)), "points is bfloat16: no matrix is"),
        (lambda: best_common_map(TOKENS.astype("float16"), TOKENS[None]), "tokens is float16: no"),
        (lambda: forward(BIG_ENDIAN), "tokens are >f8: give floats"),
        (lambda: optimum.one_layer(BIG_ENDIAN, TOKENS, 4, 0.0), "covariance is >f8: give cov"),
        (lambda: scores.similarity(BIG_ENDIAN, I2[0]), r"pool is >f8: give pool.astype"),
        (lambda: clipping.truncate(BIG_ENDIAN, 0.5), r"matrix is >f8: give matrix.astype"),
        (lambda: SENTENCES.take([True, False, False, True]), r"give np.flatnonzero\(mask\)"),
        (lambda: pools.take(POOL, POOL.y > 0), r"give np.flatnonzero\(mask\)"),
        (lambda: gradient_matching.gap(I2, [True, False]), r"give np.flatnonzero\(mask\)"),
        (lambda: clipping.clip(PARAMS, [True], "w_kq", 0.5), "layer = True: it is a whole number"),
        (lambda: Template(("bad", "good")).label_ids(None), "tokenizer is None: give that of the"),
        (lambda: text.ask(Template(("bad", "good")), SENTENCES, SENTENCES, None, 9), "is None"),
        (lambda: fit(files="fit.ckpt"), r"give Files\('fit.ckpt'\)"),
        (lambda: fit(progress=True), r"give a bar, rich.progress.Progress\(\), or None"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(call, said):
    with pytest.raises((ValueError, TypeError, AssertionError), match=said) as raised:
        call()
    assert len(str(raised.value).splitlines()) <= 3


@pytest.mark.parametrize("kind", [">f8", ">f4"])
def test_the_byte_order_of_prompts_params_and_points_does_not_matter(kind):
    rng = np.random.default_rng(0)
    x, y, query = (rng.normal(size=shape).astype(kind) for shape in ((6, 2), 6, 2))
    points = rng.normal(size=(9, 2)).astype(kind)
    task = training.Training(
        lambda params, batch, own: ((params - own) ** 2).sum(),
        lambda key, own: own,
        lambda own: optax.sgd(0.1),
        3,
    )

    def compute(change):
        prompt = Prompt(change(x), change(y), change(query), change(y[0]))
        return (
            ridge(prompt, 0.1),
            prompts.second_moment(prompt),
            training.fit(task, change(x), KEY, per_run=change(x[:1])).params,
            diversity.leverage(change(points)),
            gradient_matching.match(change(points), 2).indices,
        )

    ours, expected = compute(np.asarray), compute(lambda a: np.asarray(a, kind[1:]))
    for own, other in zip(ours, expected, strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("count", [np.int64(4), jnp.array(4)])
def test_a_count_may_be_an_integer_of_any_kind(count):
    assert risk.ols(count, 2, 1.0) == risk.ols(4, 2, 1.0)
    optimum.one_layer(I2, I2, count, 0.0)


PLAIN = np.array([[2, 1], [1, 1]])  # symmetric


@pytest.mark.parametrize(
    "call",
    [
        lambda whole: amplification.geometric_gain(whole(1), 70),
        lambda whole: training_dynamics.vector_field(1.5, whole(PLAIN), I2, 4),
        lambda whole: training_dynamics.solve(whole(np.arange(2)), I2, 4, 0.5, whole(PLAIN)).U,
        lambda whole: generalization.trajectory_bound(whole(PLAIN[None]), 1.5, 1.0, 4),
        lambda whole: generalization.measured_gap(whole(PLAIN[0]), whole(PLAIN[1]), 0.0, 1.5),
        lambda whole: risk.gradient_descent(whole(PLAIN[0]), np.array([0.5, 0.1]), 4, 0.1),
        lambda whole: descent_predictions(whole(PLAIN[0]), whole(PLAIN[1]), [0.3], [1, 2]),
        lambda whole: constructions.gradient_descent_plus_plus([0.1, 0.2], whole(PLAIN[0]), 2),
        lambda whole: constructions.prior_attention(whole(PLAIN[0]), np.array([0.5, 0.2])),
        lambda whole: constructions.preprocess_then_optimise(2, 2, whole(PLAIN[0]), [0.5, 0.2])[0],
        lambda whole: baselines.moment_features(whole(PLAIN)),
        lambda whole: matching.moment_spread(whole(np.vander([1, 2, 3, 5], 2))),
        lambda whole: moments.layer_maps(PARAMS, whole(np.eye(3, dtype=int))),
        lambda whole: clipping.kept_rank(np.array([4, 10]), whole(np.array(0))),
    ],
)
def test_whole_numbers_are_as_good_as_floats(call):
    """In whole numbers steps and weights would be cut to 0, and gains overflow; floats of another
    byte order are good too."""
    expected = jax.tree.leaves(call(np.float64))
    for kind in (np.asarray, partial(np.asarray, dtype=">f8")):
        for own, other in zip(jax.tree.leaves(call(kind)), expected, strict=True):
            np.testing.assert_array_equal(own, other)
            assert jnp.asarray(other).any()


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


@pytest.mark.parametrize("name", ["covariance", "task_covariance"])
def test_a_singular_covariance_is_sampled(name):
    task = LinearTask(5, 2, **{name: jnp.array([[1.0, 1.0], [1.0, 1.0]])})
    for batch in (sample(KEY, task), sample_moments(KEY, task)):
        assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(batch))
    if name == "covariance":
        x = sample(KEY, task).x
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-12)


def test_small_rows_keep_their_direction():
    pool, query = jnp.array([[3.0, 4.0, 1.0]]), jnp.array([4.0, 3.0])
    expected = scores.similarity(pool, query)
    tiny = jnp.float32(1e-25)
    small = scores.similarity(tiny * pool.astype("float32"), tiny * query.astype("float32"))
    np.testing.assert_allclose(small, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-25, 1e-10, 1.0, 1e25])
def test_labels_of_any_size_come_into_their_own_units(size):
    small = jax.tree.map(lambda leaf: leaf.astype("float32"), PROMPT)
    whole, c = prompts.normalise(small.replace(y=jnp.float32(size) * small.y))
    np.testing.assert_allclose(whole.y, small.y, rtol=1e-6)
    np.testing.assert_allclose(c, size, rtol=1e-6)


def test_the_bound_has_a_slope_where_nothing_is_updated():
    bound = jax.grad(lambda g: generalization.trajectory_bound(g, 1.0, 1.0, 4))
    assert (bound(jnp.zeros((1, 2, 2))) == 0).all()
    assert jnp.isfinite(bound(jnp.ones((1, 2, 2)))).all()


def test_labels_that_are_tiny_keep_a_finite_step():
    """In float32 the squares of correlations of 1e-30 are 0; the limit is that of plain numbers."""
    small = jax.tree.map(lambda leaf: (1e-15 * leaf).astype("float32"), PROMPT)
    limit = preprocessed_step_limit(small, normalise=True)
    expected = 1e30 * preprocessed_step_limit(PROMPT, normalise=True)
    np.testing.assert_allclose(limit, expected, rtol=1e-5)
