"""The flow from the demonstrations or tokens, by hand, in both modes, and summaries of ratios."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, draw_weights, jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import amplification, disparity
from lsa_lab.models import linear_attention, trace, transformer

N, D, L = 3, 2, 2
E = D + 1
CONFIGS = {
    "read-in": transformer.Config(E, L, 1, 3, width=5, kernel="linear"),
    "norm and MLP": transformer.Config(E, L, 1, 3, norm=True, mlp_width=5),
}
compute_flow = jit_numpy(amplification.demonstration_flow, static_argnums=(0, 3))
compute_token_flow = jit_numpy(amplification.token_flow, static_argnums=0)
log_ratio, log_sizes = jit_numpy(amplification.log_ratio), jit_numpy(amplification.log_sizes)


@pytest.mark.parametrize("name", ["causal", *CONFIGS])
def test_every_model_has_a_flow_to_each_layer_and_to_the_whole_query(name):
    rng = np.random.default_rng(0)
    prompt, params = draw_prompt(rng, N, D), draw_stack(rng, L, 2, E, 0.4)
    forward = functools.partial(linear_attention.forward, keys="causal")
    if config := CONFIGS.get(name):
        params = draw_weights(rng, transformer.init, config, 0.7)
        forward = functools.partial(transformer.forward, config=config)
    flow = compute_flow(forward, params, prompt)
    tokens = compute_token_flow(forward, params, prompt)
    read_out = params.read_out if name == "read-in" else np.eye(E)[-1]
    assert tokens.shape == (L, N, E, len(read_out))
    np.testing.assert_allclose(flow, -(tokens @ read_out), rtol=1e-10, atol=1e-12)
    if name == "causal":
        np.testing.assert_array_equal(compute_flow(forward, params, prompt, 1.0), -flow)
    rows, step = np.asarray(prompts.tokens(prompt)), 1e-5 * rng.normal(size=(N + 1, E))
    step[-1] = 0
    read = jit_numpy(lambda tokens: trace.predict(forward(params, tokens)))
    slope = (read(rows + step) - read(rows - step)) / 2
    np.testing.assert_allclose((flow[-1] * step[:-1]).sum(), slope, rtol=1e-6)


def test_the_mode_with_fewer_passes_is_taken_and_the_modes_agree():
    """Forward for one demonstration of 3 numbers under 4 layers, else reverse."""

    @jax.custom_vjp
    def reverse_only(tokens):
        return tokens

    reverse_only.defvjp(lambda tokens: (tokens, None), lambda _, slope: (slope,))

    def forward(params, tokens):
        return linear_attention.forward(params, reverse_only(tokens))

    rng = np.random.default_rng(0)
    prompt, deep = draw_prompt(rng, 1, D), draw_stack(rng, 4, 2, E, 0.4)
    with pytest.raises(TypeError, match="forward-mode"):
        amplification.demonstration_flow(forward, deep, prompt)
    by_tangents = compute_flow(linear_attention.forward, deep, prompt)
    by_cotangents = compute_flow(forward, jax.tree.map(lambda w: w[:3], deep), prompt)
    np.testing.assert_allclose(by_tangents[:3], by_cotangents, rtol=1e-10, atol=1e-12)


FLOW = np.array([[[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], [[0.0, 6.0], [12.0, 5.0], [0.5, 0.0]]])


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300])
def test_the_ratio_is_of_the_strongest_and_the_weakest_at_the_first_layer(scale):
    """No square overflows or vanishes."""
    ratio = amplification.amplification_ratio(scale * FLOW)
    np.testing.assert_allclose(ratio, [5.0, 6.0 / 13.0])
    slope = jit_numpy(jax.grad(lambda flow: amplification.log_ratio(flow)[0]))(scale * FLOW)
    np.testing.assert_allclose(scale * slope[0], [[0.12, 0.16], [0, -1], [0, 0]], atol=1e-12)


def test_demonstrations_of_equal_size_are_still_two():
    flow = np.array([[[1.0], [1.0]], [[1.0], [2.0]]])
    assert abs(log_ratio(flow)[1]) == pytest.approx(np.log(2.0))


def test_a_flow_of_zero_and_an_overflow_have_no_finite_ratio():
    silent, broken, late = FLOW.copy(), FLOW.copy(), FLOW.copy()
    silent[:, 1], broken[0, 2, 0], late[1, 0, 0] = 0, np.nan, np.inf
    assert np.isposinf(log_ratio(silent)).all()
    assert np.isneginf(log_sizes(silent)[:, 1]).all()
    assert np.isfinite(amplification.amplification_ratio(late)).tolist() == [True, False]
    assert np.isnan(jit_numpy(amplification.amplification_ratio)(broken)[0])
    with pytest.raises(ValueError, match=r"flow\[0\] holds 1 NaN .* at \(2, 0\): without it"):
        amplification.amplification_ratio(broken)
    spans = ((0, 1), (1, 2))  # without the broken token
    assert np.isfinite(amplification.amplification_ratio(broken, spans)).all()


def test_the_flow_of_a_reading_is_its_slope_and_that_of_a_demonstration_is_all_of_its_tokens():
    rng, spans = np.random.default_rng(0), np.array([(0, 2), (2, 3), (3, 6)])
    stream, weights = rng.normal(size=(6, 8)), rng.normal(size=(4, 48))
    slopes = np.cos(weights @ stream.ravel())[:, None] * weights

    def read_sines(tokens):  # [T, D] -> [L]
        return jnp.sin(weights @ jnp.ravel(tokens))

    flow = jit_numpy(functools.partial(amplification.flow, read_sines))(stream)
    np.testing.assert_allclose(flow, slopes.reshape(4, 6, 8), atol=1e-12)
    sizes = np.array([[np.linalg.norm(layer[a:b]) for a, b in spans] for layer in flow])
    for logs in (log_sizes(flow, spans), log_sizes(1e300 * flow, spans) - np.log(1e300)):
        np.testing.assert_allclose(np.exp(logs), sizes, rtol=1e-10)
    ratio = sizes[:, sizes[0].argmax()] / sizes[:, sizes[0].argmin()]
    np.testing.assert_allclose(amplification.amplification_ratio(flow, spans), ratio, rtol=1e-12)
    # Control: the same tokens, cut elsewhere, are other demonstrations.
    other = np.exp(log_sizes(flow, np.array([(0, 1), (1, 3), (3, 6)])))
    assert (abs(other - sizes)[:, :2] > 1e-6).all()


INF = np.inf
EPS = np.finfo(float).eps ** 0.5
summarise = jit_numpy(disparity.summarise)
effective_number = jit_numpy(disparity.effective_number)


def test_the_effective_number_of_equal_lone_and_mixed_demonstrations():
    sizes = np.array([[1.0, 1.0, 1.0, 1.0], [1e-300, 1e-300, 8.0, 1e-300], [1.0, 4.0, 1.0, 2.0]])
    mixed = -(4 / 8 * np.log(4 / 8) + 2 / 8 * np.log(2 / 8) + 2 / 8 * np.log(1 / 8))
    for shift in (0, 1e4, -1e4):  # neither scale nor overflow matters
        numbers = effective_number(np.log(sizes) + shift)
        np.testing.assert_allclose(numbers, [4, 1, np.exp(mixed)], rtol=1e-9)
    undefined = np.array([[-INF, -INF, -INF], [0.0, INF, 0.0], [0.0, np.nan, 0.0]])
    assert np.isnan(effective_number(undefined)).all()


ROWS = np.array(
    [
        [1.0, 2.0, 3.0],  # grows
        [1.0, 0.5, 2.0],  # ends larger, having fallen
        [-1.0, -0.5, 0.5],  # shrinks, and its order flips
        [1.0, 1.0, 1.0 + 1e-12],  # constant, up to rounding
        [1.0, 1e3, INF],  # overflows
        [np.nan, 1.0, 1.0],
    ]
)


def test_fractions_and_medians_are_of_the_prompts_that_stay_finite():
    summary, empty = summarise(ROWS), summarise(ROWS[4:])
    assert summary.dropped == empty.dropped == 2
    assert [summary.larger, summary.flips] == [0.5, 0.25]
    np.testing.assert_allclose(summary.median, [1.0, 0.75, 1.5])
    assert np.isnan([empty.larger, empty.flips, *empty.median]).all()
    with pytest.raises(AssertionError, match="one prompt a row"):
        disparity.summarise(ROWS[0])
    values = np.arange(12.0).reshape(3, 2, 2)
    values[1, 0, 1] = np.nan
    median, dropped = disparity.median_of_finite(values)
    assert dropped == 1
    np.testing.assert_allclose(median, [[4, 5], [6, 7]])


def test_changes_of_the_size_of_rounding_do_not_count():
    for name, last, steps in (
        ("larger", [1.0, 1.0], ([0, EPS], [0, 1e-7])),
        ("flips", [0.0, -1.0], ([0.5 * EPS, 0], [2 * EPS, 0])),
        ("flips", [1.0, 0.0], ([0, -0.5 * EPS], [0, -2 * EPS])),
    ):
        counts = [getattr(summarise(np.add([last], [step])), name) for step in steps]
        assert counts == [0, 1]
