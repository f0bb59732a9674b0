"""Prompts: tokens, moments, normalisation, padding, repetition."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_weights, jit_numpy
from lsa_lab import prompts
from lsa_lab.models import transformer
from lsa_lab.prompts import Prompt

N, D = 6, 3
RNG = np.random.default_rng(0)
PROMPT = draw_prompt(RNG, N, D)
normalise = jit_numpy(prompts.normalise)


def test_interleaved_tokens_are_each_covariate_and_then_its_label():
    rows = np.asarray(prompts.interleaved_tokens(PROMPT))
    expected = np.zeros((2 * N + 1, D + 1))
    expected[::2, :-1] = np.vstack([PROMPT.x, PROMPT.x_query])
    expected[1::2, -1] = PROMPT.y
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize(
    ("n", "dtype", "tolerance"), [(6, "float32", 1e-5), (70, "float64", 1e-10)]
)
def test_the_moments_of_a_batch_are_those_of_its_prompts(n, dtype, tolerance):
    batch = jax.tree.map(
        lambda *b: np.stack(b, dtype=dtype), *(draw_prompt(RNG, n, D) for _ in "abc")
    )
    rows = np.concatenate([batch.x, batch.y[..., None]], -1)
    moments = jit_numpy(prompts.second_moments)(batch)
    assert moments.dtype == dtype
    expected = np.einsum("bni,bnj->ijb", rows, rows) / n
    np.testing.assert_allclose(moments, expected, rtol=tolerance, atol=tolerance)


def test_a_normalised_prompt_has_unit_squares_and_its_query_the_units_of_its_demonstrations():
    scaled, scale = normalise(PROMPT)
    np.testing.assert_allclose([(scaled.x**2).mean(), (scaled.y**2).mean()], 1, rtol=1e-12)
    for values in (scaled.y, scaled.y_query):
        original = PROMPT.y if values.ndim else PROMPT.y_query
        np.testing.assert_allclose(scale * values, original, rtol=1e-12)
    unit = PROMPT.x[0] / scaled.x[0]
    np.testing.assert_allclose(unit * scaled.x_query, PROMPT.x_query, rtol=1e-12)
    assert abs(unit - scale).min() > 0.01  # Control: two units, not one
    turned = Prompt(3 * PROMPT.x, 5 * PROMPT.y, 3 * PROMPT.x_query, 5 * PROMPT.y_query)
    same = functools.partial(np.testing.assert_allclose, rtol=1e-12)
    jax.tree.map(same, normalise(turned), (scaled, 5 * scale))


def test_labels_that_are_all_zero_stay_so():
    silent = PROMPT.replace(y=np.zeros(N))
    scaled, scale = normalise(silent)
    assert scale == 1
    np.testing.assert_array_equal(scaled.y, 0)
    slope = jax.grad(lambda y: prompts.normalise(silent.replace(y=y))[0].y_query)(silent.y)
    assert jnp.isfinite(slope).all()


def test_a_prompt_without_demonstrations_has_tokens_and_no_second_moment():
    empty = PROMPT.replace(x=PROMPT.x[:0], y=PROMPT.y[:0])
    np.testing.assert_array_equal(prompts.tokens(empty), [[*PROMPT.x_query, 0]])
    batch = jax.tree.map(lambda leaf: leaf[None], empty)
    for moment, given in ((prompts.second_moment, empty), (prompts.second_moments, batch)):
        with pytest.raises(ValueError, match="x has no rows"):
            moment(given)


def test_padding_changes_no_other_entry_of_the_moment():
    moment = np.asarray(prompts.second_moment(prompts.pad_covariates(PROMPT, 2)))
    expected = np.insert(np.insert(prompts.second_moment(PROMPT), [D, D], 0, 0), [D, D], 0, 1)
    np.testing.assert_array_equal(moment, expected)


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
def test_a_model_reads_repeated_demonstrations_like_few(kernel):
    config, prompt = transformer.Config(D + 1, 2, 2, 4, kernel=kernel), draw_prompt(RNG, 12, D)
    params = draw_weights(RNG, transformer.init, config, 0.3)
    run = jit_numpy(lambda one: transformer.predict(params, prompts.tokens(one), config))
    for count in (3, 12, 8):
        few = prompt.replace(x=prompt.x[:count], y=prompt.y[:count])
        repeated = jit_numpy(prompts.repeat_demonstrations)(prompt, count)
        np.testing.assert_array_equal(repeated.x, np.resize(few.x, (12, D)))
        np.testing.assert_array_equal(repeated.y, np.resize(few.y, 12))
        gap = abs(run(repeated) - run(few))
        assert gap < 1e-10 if 12 % count == 0 else gap > 1e-6  # the last is a control
