"""Implicit updates of a prompt that reads its query, implied weights of softmax, common maps."""

import functools

import jax
import numpy as np
import pytest

from draws import draw_prompt, draw_stack, draw_weights, jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import common_map, implicit_gd
from lsa_lab.models import linear_attention, transformer

D = 3
trajectory = jit_numpy(implicit_gd.trajectory, static_argnames="keys")


@pytest.mark.parametrize("n", [8, 2100])  # the forward pass takes all, or a summary
def test_a_query_that_is_read_is_one_more_demonstration(n):
    rng = np.random.default_rng(0)
    prompt, params = draw_prompt(rng, n, D), draw_stack(rng, 4, 2, D + 1)
    path = trajectory(params, prompt, keys="all")
    assert path.residual < 1e-10
    assert np.abs(path.maps - trajectory(params, prompt).maps).max() > 1e-5


def test_implied_weights_of_softmax_are_its_sensitivities():
    rng, config = np.random.default_rng(0), transformer.Config(D + 1, 2, 2, 3, mlp_width=5)
    prompt, params = draw_prompt(rng, 8, D), draw_weights(rng, transformer.init, config, 0.5)

    @jit_numpy
    def predict(shift):
        shifted = prompt.replace(x_query=prompt.x_query + shift)
        return transformer.predict(params, prompts.tokens(shifted), config)

    forward = functools.partial(transformer.forward, config=config)
    weights = jit_numpy(implicit_gd.implied_weights, static_argnums=0)(forward, params, prompt)
    assert weights.shape == (3, D)
    slopes = [(predict(step) - predict(-step)) / 2e-5 for step in 1e-5 * np.eye(D)]
    np.testing.assert_allclose(weights[-1], slopes, atol=1e-8)


N, L = 12, 3
RNG = np.random.default_rng(0)
LINEAR, NOISY = draw_stack(RNG, L, 2, D + 1), draw_prompt(RNG, N, D)
PROMPTS = {"noise": NOISY, "a subspace of tokens": NOISY.replace(y=NOISY.x.sum(1))}
OTHERS = {"softmax": {}, "all parts": dict(width=9, norm=True, mlp_width=8)}


@functools.partial(jit_numpy, static_argnums=0)
def find_map(forward, params, prompt):
    tokens = prompts.tokens(prompt)
    return common_map.best_common_map(tokens, forward(params, tokens).stream)


def make_transformer(**changes):
    config = transformer.Config(D + 1, L, 2, 4, **changes)
    params = draw_weights(np.random.default_rng(0), transformer.init, config, 0.3)
    return functools.partial(transformer.forward, config=config), params


@pytest.mark.parametrize("name", PROMPTS)
def test_masked_linear_attention_has_a_common_map(name):
    result = find_map(linear_attention.forward, LINEAR, PROMPTS[name])
    assert max(result.residual.max(), result.unexplained.max()) < 1e-10
    if name == "noise":
        maps = trajectory(LINEAR, NOISY).maps
        np.testing.assert_allclose(result.maps, maps, atol=1e-10)


def test_a_read_in_is_part_of_the_map():
    forward, params = make_transformer(width=9, kernel="linear")
    result = find_map(forward, params, NOISY)
    assert result.maps.shape == (L + 1, 9, D + 1)
    assert result.residual.max() < 1e-10
    np.testing.assert_allclose(result.maps[0], params.read_in, atol=1e-10)


@pytest.mark.parametrize("name", ["causal", *OTHERS])
def test_other_models_have_none_and_the_map_is_that_of_least_squares(name):
    forward, params = functools.partial(linear_attention.forward, keys="causal"), LINEAR
    if name in OTHERS:
        forward, params = make_transformer(**OTHERS[name])
    result = find_map(forward, params, NOISY)
    assert result.residual[0] < 1e-10
    assert result.unexplained[0] == 0
    assert min(result.residual[1:].min(), result.unexplained[1:].min()) > 1e-3
    tokens = np.asarray(prompts.tokens(NOISY))
    last = jit_numpy(forward)(params, tokens).stream[-1]
    fitted = np.linalg.lstsq(tokens, last)[0].T
    np.testing.assert_allclose(result.maps[-1], fitted, atol=1e-10)
    missed = np.linalg.norm(last - tokens @ fitted.T) / np.linalg.norm(last)
    np.testing.assert_allclose(result.residual[-1], missed)


def test_a_decomposition_that_fails_is_repeated_by_another_algorithm(monkeypatch):
    """LAPACK's divide and conquer does not converge on some prompts whose tokens repeat."""
    tokens = RNG.normal(size=(40, 6))[RNG.integers(0, 40, 61)]  # 61: traced nowhere else
    stream = np.stack([tokens, RNG.normal(size=(61, 6))])
    decompose, default = jax.lax.linalg.svd, jax.lax.linalg.SvdAlgorithm.DEFAULT

    def fail_by_default(rows, **how):
        broken = np.nan if how["algorithm"] == default else 1.0
        return jax.tree.map(lambda part: broken * part, decompose(rows, **how))

    monkeypatch.setattr(jax.lax.linalg, "svd", fail_by_default)
    fitted = np.linalg.lstsq(tokens, stream[1])[0].T
    found = common_map.best_common_map(tokens, stream)
    np.testing.assert_allclose(found.maps, [np.eye(6), fitted], atol=1e-12)
    tokens[3, 2] = np.nan
    assert np.isnan(common_map.best_common_map(tokens, stream).residual[1])
