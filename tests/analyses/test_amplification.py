"""The flow from the demonstrations: by hand, in both modes, without overflow, to second order."""

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
SHALLOW = transformer.Config(E, 1, 1, 3)
flow_of = jit_numpy(amplification.demonstration_flow, static_argnums=0)
token_flow_of = jit_numpy(amplification.token_flow, static_argnums=0)
interactions_of = jit_numpy(amplification.interactions, static_argnums=0)
log_ratio = jax.jit(amplification.log_ratio)
causal = functools.partial(linear_attention.forward, keys="causal")


def draw(seed=0, n=N, num_layers=L, num_heads=2):
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(n, D)), rng.normal(size=n), rng.normal(size=D), np.zeros(()))
    weights = 0.4 * rng.normal(size=(2, num_layers, num_heads, E, E))
    return prompt, linear_attention.Params(*weights)


@functools.cache
def model_of(config):
    """A transformer, or for None causal linear attention."""
    if config is None:
        return causal, draw()[1]
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.7 * rng.normal(size=leaf.shape), shapes)
    return functools.partial(transformer.forward, config=config), params


def prediction(forward, params, prompt, demonstrations):
    tokens = jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]])
    return trace.predict(forward(params, tokens))


@functools.partial(jax.jit, static_argnums=0)
def second_order(forward, params, prompt):
    """Interactions, and the Hessian [n, e, n, e] by reverse over reverse."""

    def read(demonstrations):
        return prediction(forward, params, prompt, demonstrations)

    return (
        amplification.interactions(forward, params, prompt),
        jax.jacrev(jax.jacrev(read))(prompts.tokens(prompt)[:-1]),
    )


@pytest.mark.parametrize("config", [None, READ_IN, FULL])
def test_every_model_has_a_flow_to_each_layer_and_to_the_whole_query(config):
    forward, params = model_of(config)
    prompt, _ = draw()
    flow, tokens = flow_of(forward, params, prompt), token_flow_of(forward, params, prompt)
    width = 5 if config is READ_IN else E
    assert flow.shape == (L, N, E)
    assert tokens.shape == (L, N, E, width)
    read_out = params.read_out if config is READ_IN else np.eye(E)[-1]
    np.testing.assert_allclose(flow, -(tokens @ read_out), rtol=1e-10, atol=1e-12)
    step = 1e-5 * np.random.default_rng(1).normal(size=(N, E))
    read = jax.jit(functools.partial(prediction, forward, params, prompt))
    demonstrations = np.asarray(prompts.tokens(prompt)[:-1])
    slope = read(demonstrations + step) - read(demonstrations - step)
    np.testing.assert_allclose((flow[-1] * step).sum(), slope / 2, rtol=1e-6)


def test_the_mode_with_fewer_passes_is_taken_and_both_agree():
    """Forward for one demonstration of 3 numbers under 4 layers, else reverse."""

    @jax.custom_vjp
    def reverse_only(tokens):
        return tokens

    reverse_only.defvjp(lambda tokens: (tokens, None), lambda _, slope: (slope,))

    def closed(params, tokens):
        return linear_attention.forward(params, reverse_only(tokens))

    prompt, deep = draw(n=1, num_layers=4)
    with pytest.raises(TypeError, match="forward-mode"):
        amplification.demonstration_flow(closed, deep, prompt)
    forward = flow_of(linear_attention.forward, deep, prompt)
    shallow = jax.tree.map(lambda w: w[:3], deep)
    reverse = flow_of(closed, shallow, prompt)
    np.testing.assert_allclose(forward[:3], reverse, rtol=1e-10, atol=1e-12)


def test_no_pass_is_made_for_each_demonstration():
    """Twice the demonstrations, at most twice the work."""
    for forward in (same_trace, linear_attention.forward):
        assert operations(forward, 200) < 2.1 * operations(forward, 100)


@jax.jit
def both_flows(params, prompt, sign):
    through_tokens = amplification.demonstration_flow(
        linear_attention.forward, params, prompt, sign
    )
    return jnp.stack([through_tokens, amplification.moment_flow(params, prompt, sign)])


def test_the_sign_is_that_of_the_read_out():
    prompt, params = draw()
    plus, minus = both_flows(params, prompt, 1.0), both_flows(params, prompt, -1.0)
    np.testing.assert_array_equal(plus, -minus)
    np.testing.assert_allclose(plus[0], plus[1], rtol=1e-10, atol=1e-12)


def same_trace(params, tokens, **options):  # a forward that the library cannot know
    return linear_attention.forward(params, tokens, **options)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(jnp.float64, 1e-10), (jnp.float32, 1e-5)], ids=["64", "32"]
)
def test_a_long_prompt_goes_through_its_moment_to_the_same_flow(dtype, tolerance):
    prompt, params = jax.tree.map(lambda leaf: leaf.astype(dtype), draw(n=1024))
    mask = jnp.array([[1.0, 0.5], [0.0, 1.0]])
    shut = functools.partial(linear_attention.forward, head_mask=mask)
    pairs = (
        (linear_attention.forward, same_trace),
        (shut, functools.partial(same_trace, head_mask=mask)),
    )
    for flow in (amplification.demonstration_flow, amplification.token_flow):
        fast, slow = jax.jit(
            lambda params, prompt, flow=flow: tuple(
                [flow(forward, params, prompt) for forward in way]
                for way in zip(*pairs, strict=True)
            )
        )(params, prompt)
        for found, expected in zip(fast, slow, strict=True):
            assert found.dtype == dtype
            bound = tolerance * np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def operations(forward, n):
    prompt, params = draw(n=n)
    flow = functools.partial(amplification.demonstration_flow, forward)
    return jax.jit(flow).lower(params, prompt).cost_analysis()["flops"]


def test_only_where_it_is_exact_and_shorter_is_the_moment_taken():
    assert operations(linear_attention.forward, 1024) < operations(same_trace, 1024) / 2
    assert operations(linear_attention.forward, 2) == operations(same_trace, 2)
    for options in ({"keys": "causal"}, {"keys": "all"}, {"normalise": False}):
        own, other = (
            functools.partial(f, **options) for f in (linear_attention.forward, same_trace)
        )
        assert operations(own, 100) == operations(other, 100)


FLOW = np.array([[[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], [[0.0, 6.0], [12.0, 5.0], [0.5, 0.0]]])


def test_the_ratio_is_of_the_strongest_and_the_weakest_at_the_first_layer():
    np.testing.assert_allclose(amplification.amplification_ratio(FLOW), [5.0, 6.0 / 13.0])
    np.testing.assert_allclose(log_ratio(FLOW), np.log([5.0, 6.0 / 13.0]))


def test_equal_demonstrations_are_still_two():
    flow = np.array([[[1.0], [1.0]], [[1.0], [2.0]]])
    assert abs(amplification.log_ratio(flow)[1]) == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_no_square_overflows_or_vanishes(scale):
    np.testing.assert_allclose(amplification.amplification_ratio(scale * FLOW), [5.0, 6.0 / 13.0])
    slope = jit_numpy(jax.grad(lambda flow: amplification.log_ratio(flow)[0]))(scale * FLOW)
    np.testing.assert_allclose(scale * slope[0], [[0.12, 0.16], [0, -1], [0, 0]], atol=1e-12)


def test_no_flow_and_an_overflow_have_no_finite_ratio():
    silent, broken, late = FLOW.copy(), FLOW.copy(), FLOW.copy()
    silent[:, 1] = 0
    broken[0, 2, 0] = np.nan
    late[1, 0, 0] = np.inf
    assert np.isposinf(log_ratio(silent)).all()
    assert np.isnan(log_ratio(broken)[0])
    assert np.isfinite(log_ratio(late)).tolist() == [True, False]
    assert np.isneginf(amplification.log_sizes(silent)[:, 1]).all()


def test_a_ratio_whose_order_cannot_be_read_is_refused_and_a_later_overflow_is_shown():
    broken, late = FLOW.copy(), FLOW.copy()
    broken[0, 2, 0], late[1, 0, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"flow\[0\] holds 1 NaN .* at \(2, 0\): without it"):
        amplification.amplification_ratio(broken)
    assert np.isfinite(amplification.amplification_ratio(late)).tolist() == [True, False]
    assert np.isnan(jit_numpy(amplification.amplification_ratio)(broken)[0])  # nothing to read
    two = ((0, 1), (1, 2))  # the broken token is in neither
    assert np.isfinite(amplification.amplification_ratio(broken, two)).all()


def test_interactions_are_the_contracted_hessian_and_symmetric():
    forward, params = model_of(SHALLOW)
    prompt, _ = draw()
    rows = prompts.tokens(prompt)[:-1]
    found, hessian = second_order(forward, params, prompt)
    np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-12)
    expected = np.einsum("ia,iajb,jb->ij", rows, hessian, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_many_interactions_are_taken_in_parts():
    prompt, params = draw(n=70, num_layers=1)
    found = interactions_of(linear_attention.forward, params, prompt)
    assert found.shape == (70, 70)
    np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-12)


def test_what_is_no_flow_is_refused():
    prompt, params = draw()
    batch = jax.tree.map(lambda leaf: leaf[None], prompt)
    with pytest.raises(AssertionError, match="vmap"):
        amplification.demonstration_flow(linear_attention.forward, params, batch)
    with pytest.raises(TypeError, match=r"forward returned .*not the Trace"):
        amplification.demonstration_flow(lambda _, tokens: tokens[-1], params, prompt)
    with pytest.raises(TypeError, match="moment form exists for"):
        amplification.moment_flow(model_of(FULL)[1], prompt)
    with pytest.raises(AssertionError, match="vmap"):
        amplification.log_ratio(FLOW[None])
    empty = prompt.replace(x=prompt.x[:0], y=prompt.y[:0])
    with pytest.raises(ValueError, match="at least one demonstration"):
        amplification.moment_flow(params, empty)
