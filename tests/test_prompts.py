"""Prompts: tokens, moments, normalisation, padding, repetition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch

TASK = LinearTask(n=6, d=3, noise_std=0.5)


@jax.jit
def draw(key):
    return sample(key, TASK)


@jax.jit
def model(params, prompt):
    """Predict from the normalised prompt."""
    scaled, scale = prompts.normalise(prompt)
    return scale * predict(linear_attention.forward(params, prompts.tokens(scaled)))


def test_interleaved_tokens_are_each_covariate_and_then_its_label():
    prompt = draw(jax.random.key(3))
    rows = prompts.interleaved_tokens(prompt)
    assert rows.shape == (2 * TASK.n + 1, TASK.d + 1)
    np.testing.assert_array_equal(rows[::2, :-1], jnp.vstack([prompt.x, prompt.x_query[None]]))
    np.testing.assert_array_equal(rows[1::2, -1], prompt.y)
    assert not rows[::2, -1].any()
    assert not rows[1::2, :-1].any()


@pytest.mark.parametrize("n", [6, 70])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-5)])
def test_the_moments_of_a_batch_are_those_of_its_prompts(dtype, tolerance, n):
    task = TASK.replace(dtype=dtype, n=n)
    batch = jax.jit(lambda key: sample_batch(key, task, 7))(jax.random.key(4))
    expected = jax.vmap(prompts.second_moment, out_axes=-1)(batch)
    np.testing.assert_allclose(
        jax.jit(prompts.second_moments)(batch), expected, rtol=tolerance, atol=tolerance
    )


def test_a_normalised_prompt_has_unit_squares_and_its_query_the_units_of_its_demonstrations():
    prompt = draw(jax.random.key(0))
    scaled, scale = prompts.normalise(prompt)
    np.testing.assert_allclose([jnp.mean(scaled.x**2), jnp.mean(scaled.y**2)], 1, rtol=1e-12)
    np.testing.assert_allclose(scaled.y / scaled.y_query, prompt.y / prompt.y_query, rtol=1e-12)
    np.testing.assert_allclose(scale * scaled.y_query, prompt.y_query, rtol=1e-12)
    np.testing.assert_allclose(
        scaled.x_query / scaled.x[0], prompt.x_query / prompt.x[0], rtol=1e-12
    )
    assert abs(jnp.sqrt(jnp.mean(prompt.x**2)) - scale) > 0.01  # Control: two units, not one


def test_a_model_of_normalised_prompts_knows_no_units():
    params = linear_attention.init(jax.random.key(1), 2, 2, TASK.d, scale=0.3)
    prompt = draw(jax.random.key(2))
    turned = Prompt(3 * prompt.x, 5 * prompt.y, 3 * prompt.x_query, 5 * prompt.y_query)
    expected = 5 * model(params, prompt)
    np.testing.assert_allclose(model(params, turned), expected, rtol=1e-12)
    plain = jax.jit(lambda p: predict(linear_attention.forward(params, prompts.tokens(p))))
    assert abs(plain(turned) - 5 * plain(prompt)) > 0.1 * abs(expected), "units matter otherwise"


def test_labels_that_are_all_zero_stay_so():
    silent = draw(jax.random.key(3)).replace(y=jnp.zeros(TASK.n))
    scaled, scale = prompts.normalise(silent)
    assert scale == 1
    np.testing.assert_array_equal(scaled.y, 0)
    slope = jax.grad(lambda y: prompts.normalise(silent.replace(y=y))[0].y_query)(silent.y)
    assert jnp.isfinite(slope).all()


def test_a_prompt_without_demonstrations_has_tokens_and_no_second_moment():
    empty = Prompt(jnp.zeros((0, TASK.d)), jnp.zeros(0), jnp.ones(TASK.d), jnp.ones(()))
    np.testing.assert_array_equal(prompts.tokens(empty), [[*np.ones(TASK.d), 0]])
    batch = jax.tree.map(lambda leaf: leaf[None], empty)
    for moment, given in ((prompts.second_moment, empty), (prompts.second_moments, batch)):
        with pytest.raises(ValueError, match="x has no rows"):
            moment(given)


def test_padding_changes_no_other_entry_of_the_moment():
    prompt = draw(jax.random.key(4))
    wider = prompts.pad_covariates(prompt, 2)
    assert prompts.tokens(wider).shape == (TASK.n + 1, TASK.d + 3)
    moment = prompts.second_moment(wider)
    kept = np.r_[0 : TASK.d, TASK.d + 2]
    np.testing.assert_array_equal(moment[np.ix_(kept, kept)], prompts.second_moment(prompt))
    assert jnp.count_nonzero(moment) == jnp.count_nonzero(moment[np.ix_(kept, kept)])


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
def test_a_model_reads_repeated_demonstrations_like_few(kernel):
    prompt = sample(jax.random.key(5), TASK.replace(n=12))
    config = transformer.Config(TASK.d + 1, 2, 2, 4, kernel=kernel)
    params = jax.jit(transformer.init, static_argnums=1)(jax.random.key(6), config)
    predict = jax.jit(lambda one: transformer.predict(params, prompts.tokens(one), config))
    repeat = jax.jit(prompts.repeat_demonstrations)
    for count in (3, 4, 12, 8):
        few = prompt.replace(x=prompt.x[:count], y=prompt.y[:count])
        repeated = repeat(prompt, count)
        np.testing.assert_array_equal(repeated.x, np.resize(few.x, (12, TASK.d)))
        np.testing.assert_array_equal(repeated.y, np.resize(few.y, 12))
        gap = abs(predict(repeated) - predict(few))
        assert gap < 1e-10 if 12 % count == 0 else gap > 1e-6  # the last is a control
