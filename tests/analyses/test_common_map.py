"""The best common map: nothing is missed where there is one, something where there is none."""

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
WIDE = transformer.Config(D + 1, L, 2, 4, width=9)
READ_IN = transformer.Config(D + 1, L, 2, 4, width=9, kernel="linear")
SOFTMAX = transformer.Config(D + 1, L, 2, 4)
FULL = transformer.Config(D + 1, L, 2, 4, norm=True, mlp_width=8)


def draw(noise=1.0, n=N):
    rng = np.random.default_rng(0)
    x, x_query = rng.normal(size=(n, D)), rng.normal(size=D)
    prompt = prompts.Prompt(x, x.sum(1) + noise * rng.normal(size=n), x_query, np.zeros(()))
    weights = 0.3 * rng.normal(size=(2, L, 2, D + 1, D + 1))
    return prompt, linear_attention.Params(*weights)


@functools.partial(jit_numpy, static_argnums=0)
def common(forward, params, prompt):
    tokens = prompts.tokens(prompt)
    return common_map.best_common_map(tokens, forward(params, tokens).stream)


@functools.cache
def transformer_with(config):
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.3 * rng.normal(size=leaf.shape), shapes)
    return functools.partial(transformer.forward, config=config), params


def causal(params, tokens):
    return linear_attention.forward(params, tokens, keys="causal")


def test_masked_linear_attention_has_a_common_map_and_it_is_found():
    prompt, params = draw()
    found = common(linear_attention.forward, params, prompt)
    assert found.residual.max() < 1e-10
    assert found.unexplained.max() < 1e-10
    maps = jax.jit(implicit_gd.trajectory)(params, prompt).maps
    np.testing.assert_allclose(found.maps, maps, atol=1e-10)


def test_labels_without_noise_still_leave_nothing_unexplained():
    prompt, params = draw(noise=0.0)
    assert common(linear_attention.forward, params, prompt).unexplained.max() < 1e-10


def test_a_read_in_is_part_of_the_map():
    prompt, _ = draw()
    forward, params = transformer_with(READ_IN)
    found = common(forward, params, prompt)
    assert found.maps.shape == (L + 1, 9, D + 1)
    assert found.residual.max() < 1e-10
    np.testing.assert_allclose(found.maps[0], params.read_in, atol=1e-10)


def test_causal_masks_softmax_norm_and_mlp_have_no_common_map():
    prompt, params = draw()
    found = [common(causal, params, prompt)]
    found += [common(*transformer_with(config), prompt) for config in (WIDE, SOFTMAX, FULL)]
    for one in found:
        assert one.residual[0] < 1e-10
        assert one.unexplained[0] == 0
        assert min(one.residual[1:].min(), one.unexplained[1:].min()) > 1e-3


def test_the_map_is_the_best_there_is():
    prompt, _ = draw()
    forward, params = transformer_with(SOFTMAX)
    found = common(forward, params, prompt)
    tokens, *_, last = jit_numpy(forward)(params, prompts.tokens(prompt)).stream
    fitted = np.linalg.lstsq(tokens, last)[0].T
    np.testing.assert_allclose(found.maps[-1], fitted, atol=1e-10)
    missed = np.linalg.norm(last - tokens @ fitted.T) / np.linalg.norm(last)
    np.testing.assert_allclose(found.residual[-1], missed)


def test_queries_share_a_map_in_linear_attention_alone():
    prompt, params = draw()
    queries = np.random.default_rng(1).normal(size=(10, D))
    find = jit_numpy(common_map.best_common_query_map, static_argnums=0)
    # Causal demonstrations change one another, but every query is read by the same map.
    for forward in (linear_attention.forward, causal):
        assert find(forward, params, prompt, queries).unexplained.max() < 1e-10
    forward, params = transformer_with(SOFTMAX)
    found = find(forward, params, prompt, queries)
    tokens = np.repeat(np.c_[prompt.x, prompt.y][None], 10, 0)
    asked = np.concatenate([tokens, np.pad(queries, ((0, 0), (0, 1)))[:, None]], 1)
    last = jit_numpy(jax.vmap(forward, (None, 0)))(params, asked).stream[:, -1, -1]
    fitted = np.linalg.lstsq(queries, last)[0]  # their label slot is empty: d directions, not e
    missed = np.linalg.norm(last - queries @ fitted) / np.linalg.norm(last)
    np.testing.assert_allclose(found.residual[-1], missed)
    assert found.unexplained[1:].min() > 1e-3


def test_too_few_tokens_are_refused():
    with pytest.raises(ValueError, match="4 tokens of width 4 always have a common map"):
        common_map.best_common_map(jnp.ones((4, 4)), jnp.ones((L + 1, 4, 9)))
    with pytest.raises(AssertionError, match="T as in tokens"):
        common_map.best_common_map(jnp.ones((5, 4)), jnp.ones((L + 1, 6, 4)))
    prompt, params = draw()
    with pytest.raises(ValueError, match="more than 4 queries"):
        common_map.best_common_query_map(linear_attention.forward, params, prompt, jnp.ones((4, D)))


def test_a_decomposition_that_fails_is_done_in_another_way(swap):
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
