"""The flow from the demonstrations or tokens: by hand, in both modes, without overflow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, trace, transformer
from lsa_lab.prompts import Prompt

N, D, L = 3, 2, 2
E = D + 1
READ_IN = transformer.Config(E, L, 1, 3, width=5, kernel="linear")
FULL = transformer.Config(E, L, 1, 3, norm=True, mlp_width=5)
compute_flow = jit_numpy(amplification.demonstration_flow, static_argnums=0)
compute_token_flow = jit_numpy(amplification.token_flow, static_argnums=0)
log_ratio = jax.jit(amplification.log_ratio)
causal = functools.partial(linear_attention.forward, keys="causal")


def draw(seed=0, n=N, num_layers=L, num_heads=2):
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(n, D)), rng.normal(size=n), rng.normal(size=D), np.zeros(()))
    matrices = 0.4 * rng.normal(size=(2, num_layers, num_heads, E, E))
    return prompt, linear_attention.Params(*matrices)


def make_model(config):
    """A transformer, or for None causal linear attention."""
    if config is None:
        return causal, draw()[1]
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.7 * rng.normal(size=leaf.shape), shapes)
    return functools.partial(transformer.forward, config=config), params


@pytest.mark.parametrize("config", [None, READ_IN, FULL])
def test_every_model_has_a_flow_to_each_layer_and_to_the_whole_query(config):
    forward, params = make_model(config)
    prompt, _ = draw()
    flow, tokens = (
        compute_flow(forward, params, prompt),
        compute_token_flow(forward, params, prompt),
    )
    width = 5 if config is READ_IN else E
    assert flow.shape == (L, N, E)
    assert tokens.shape == (L, N, E, width)
    read_out = params.read_out if config is READ_IN else np.eye(E)[-1]
    np.testing.assert_allclose(flow, -(tokens @ read_out), rtol=1e-10, atol=1e-12)
    plus = jit_numpy(amplification.demonstration_flow, static_argnums=(0, 3))
    np.testing.assert_array_equal(plus(forward, params, prompt, 1.0), -flow)
    step = 1e-5 * np.random.default_rng(1).normal(size=(N, E))
    rows = np.asarray(prompts.tokens(prompt))
    read = jax.jit(
        lambda demonstrations: trace.predict(
            forward(params, jnp.concatenate([demonstrations, rows[-1:]]))
        )
    )
    slope = read(rows[:-1] + step) - read(rows[:-1] - step)
    np.testing.assert_allclose((flow[-1] * step).sum(), slope / 2, rtol=1e-6)


def test_the_mode_with_fewer_passes_is_taken_and_the_modes_agree():
    """Forward for one demonstration of 3 numbers under 4 layers, else reverse."""

    @jax.custom_vjp
    def reverse_only(tokens):
        return tokens

    reverse_only.defvjp(lambda tokens: (tokens, None), lambda _, slope: (slope,))

    def forward(params, tokens):
        return linear_attention.forward(params, reverse_only(tokens))

    prompt, deep = draw(n=1, num_layers=4)
    with pytest.raises(TypeError, match="forward-mode"):
        amplification.demonstration_flow(forward, deep, prompt)
    by_tangents = compute_flow(linear_attention.forward, deep, prompt)
    by_cotangents = compute_flow(forward, jax.tree.map(lambda w: w[:3], deep), prompt)
    np.testing.assert_allclose(by_tangents[:3], by_cotangents, rtol=1e-10, atol=1e-12)


def test_the_flow_of_a_long_prompt_is_that_through_its_moment():
    prompt, params = jax.tree.map(lambda leaf: leaf.astype(np.float32), draw(n=1024))
    expected = compute_flow(linear_attention.forward, params, prompt)
    flow = jit_numpy(amplification.moment_flow)(params, prompt)
    assert flow.dtype == np.float32
    np.testing.assert_allclose(flow, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


FLOW = np.array([[[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], [[0.0, 6.0], [12.0, 5.0], [0.5, 0.0]]])


def change_flow(layer, row, value):
    flow = FLOW.copy()
    flow[layer, row] = value
    return flow


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300])
def test_the_ratio_is_of_the_strongest_and_the_weakest_at_the_first_layer(scale):
    """No square overflows or vanishes."""
    ratio = amplification.amplification_ratio(scale * FLOW)
    np.testing.assert_allclose(ratio, [5.0, 6.0 / 13.0])
    slope = jit_numpy(jax.grad(lambda flow: amplification.log_ratio(flow)[0]))(scale * FLOW)
    np.testing.assert_allclose(scale * slope[0], [[0.12, 0.16], [0, -1], [0, 0]], atol=1e-12)


def test_demonstrations_of_equal_size_are_still_two():
    flow = np.array([[[1.0], [1.0]], [[1.0], [2.0]]])
    assert abs(amplification.log_ratio(flow)[1]) == pytest.approx(np.log(2.0))


def test_a_flow_of_zero_and_an_overflow_have_no_finite_ratio():
    silent = change_flow(slice(None), 1, 0)
    broken, late = change_flow(0, 2, [np.nan, 0]), change_flow(1, 0, [np.inf, 6])
    assert np.isposinf(log_ratio(silent)).all()
    assert np.isneginf(amplification.log_sizes(silent)[:, 1]).all()
    assert np.isfinite(amplification.amplification_ratio(late)).tolist() == [True, False]
    assert np.isnan(jit_numpy(amplification.amplification_ratio)(broken)[0])
    with pytest.raises(ValueError, match=r"flow\[0\] holds 1 NaN .* at \(2, 0\): without it"):
        amplification.amplification_ratio(broken)
    spans = ((0, 1), (1, 2))  # without the broken token
    assert np.isfinite(amplification.amplification_ratio(broken, spans)).all()


STREAM, WEIGHTS = (np.random.default_rng(s).normal(size=n) for s, n in ((0, (6, 8)), (1, (4, 48))))
SPANS = ((0, 2), (2, 3), (3, 6))


def read_sines(tokens):  # [T, D] -> [L]
    return jnp.sin(WEIGHTS @ jnp.ravel(tokens))


def test_the_flow_of_a_reading_is_its_slope():
    slopes = np.cos(WEIGHTS @ STREAM.ravel())[:, None] * WEIGHTS
    flow = jit_numpy(lambda: amplification.flow(read_sines, STREAM))()
    np.testing.assert_allclose(flow, slopes.reshape(4, 6, 8), atol=1e-12)


def test_the_size_of_a_demonstration_is_that_of_its_tokens():
    flow = jit_numpy(lambda: amplification.flow(read_sines, STREAM))()
    sizes = np.array([[np.linalg.norm(layer[a:b]) for a, b in SPANS] for layer in flow])
    for logs in (
        amplification.log_sizes(flow, SPANS),
        jax.jit(amplification.log_sizes)(flow, jnp.array(SPANS)),
        amplification.log_sizes(1e300 * flow, SPANS) - np.log(1e300),
    ):
        np.testing.assert_allclose(np.exp(logs), sizes, rtol=1e-10)
    ratio = sizes[:, sizes[0].argmax()] / sizes[:, sizes[0].argmin()]
    np.testing.assert_allclose(amplification.amplification_ratio(flow, SPANS), ratio, rtol=1e-12)
    # Control: the same tokens, cut elsewhere, are other demonstrations.
    other = np.exp(amplification.log_sizes(flow, ((0, 1), (1, 3), (3, 6))))
    assert (abs(other - sizes)[:, :2] > 1e-6).all()
