"""The best common map: no residual where there is one, some where there is none."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.analyses import common_map, implicit_gd
from lsa_lab.models import linear_attention, transformer

N, D, L = 12, 3, 3
READ_IN = transformer.Config(D + 1, L, 2, 4, width=9, kernel="linear")
SOFTMAX = transformer.Config(D + 1, L, 2, 4)
OTHERS = {
    "wide": transformer.Config(D + 1, L, 2, 4, width=9),
    "softmax": SOFTMAX,
    "norm and MLP": transformer.Config(D + 1, L, 2, 4, norm=True, mlp_width=8),
}
causal = functools.partial(linear_attention.forward, keys="causal")


def draw(noise=1.0):
    rng = np.random.default_rng(0)
    x, x_query = rng.normal(size=(N, D)), rng.normal(size=D)
    prompt = prompts.Prompt(x, x.sum(1) + noise * rng.normal(size=N), x_query, np.zeros(()))
    weights = 0.3 * rng.normal(size=(2, L, 2, D + 1, D + 1))
    return prompt, linear_attention.Params(*weights)


PROMPT, LINEAR = draw()


@functools.partial(jit_numpy, static_argnums=0)
def find_map(forward, params, prompt):
    tokens = prompts.tokens(prompt)
    return common_map.best_common_map(tokens, forward(params, tokens).stream)


def make_transformer(config):
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.3 * rng.normal(size=leaf.shape), shapes)
    return functools.partial(transformer.forward, config=config), params


@pytest.mark.parametrize("noise", [1.0, 0.0])  # without noise the tokens lie in a subspace
def test_masked_linear_attention_has_a_common_map(noise):
    prompt, params = draw(noise)
    result = find_map(linear_attention.forward, params, prompt)
    assert max(result.residual.max(), result.unexplained.max()) < 1e-10
    if noise:
        maps = jax.jit(implicit_gd.trajectory)(params, prompt).maps
        np.testing.assert_allclose(result.maps, maps, atol=1e-10)


def test_a_read_in_is_part_of_the_map():
    forward, params = make_transformer(READ_IN)
    result = find_map(forward, params, PROMPT)
    assert result.maps.shape == (L + 1, 9, D + 1)
    assert result.residual.max() < 1e-10
    np.testing.assert_allclose(result.maps[0], params.read_in, atol=1e-10)


@pytest.mark.parametrize("name", ["causal", *OTHERS])
def test_other_models_have_none_and_the_map_is_that_of_least_squares(name):
    forward, params = (causal, LINEAR) if name == "causal" else make_transformer(OTHERS[name])
    result = find_map(forward, params, PROMPT)
    assert result.residual[0] < 1e-10
    assert result.unexplained[0] == 0
    assert min(result.residual[1:].min(), result.unexplained[1:].min()) > 1e-3
    tokens = np.asarray(prompts.tokens(PROMPT))
    last = jit_numpy(forward)(params, tokens).stream[-1]
    fitted = np.linalg.lstsq(tokens, last)[0].T
    np.testing.assert_allclose(result.maps[-1], fitted, atol=1e-10)
    missed = np.linalg.norm(last - tokens @ fitted.T) / np.linalg.norm(last)
    np.testing.assert_allclose(result.residual[-1], missed)


def test_a_decomposition_that_fails_is_repeated_by_another_algorithm(swap):
    """LAPACK's divide and conquer does not converge on some prompts whose tokens repeat."""
    rng = np.random.default_rng(0)
    tokens = jnp.asarray(rng.normal(size=(40, 6)))[jnp.asarray(rng.integers(0, 40, 60))]
    stream = jnp.stack([tokens, jnp.asarray(rng.normal(size=(60, 6)))])
    expected = common_map.best_common_map(tokens, stream)
    decompose, default = jax.lax.linalg.svd, jax.lax.linalg.SvdAlgorithm.DEFAULT

    def fail_by_default(rows, **how):
        broken = jnp.nan if how["algorithm"] == default else 1.0
        return jax.tree.map(lambda part: broken * part, decompose(rows, **how))

    swap(jax.lax.linalg, "svd", fail_by_default)
    again = common_map.best_common_map(tokens, stream)
    for name in ("maps", "residual", "unexplained"):
        np.testing.assert_allclose(getattr(again, name), getattr(expected, name), atol=1e-12)
    lost = common_map.best_common_map(tokens.at[3, 2].set(jnp.nan), stream)
    assert jnp.isnan(lost.residual[1])
