"""The implicit updates of a prompt: shapes, refusals, and known paths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention, transformer
from lsa_lab.prompts import Prompt, tokens

N, D, L = 8, 3, 4
trajectory = jax.jit(implicit_gd.trajectory, static_argnames="keys")
upper_bounds = jax.jit(implicit_gd.upper_bounds)
implied_weights = jax.jit(implicit_gd.implied_weights, static_argnums=0)


def draw(seed=0, n=N):
    rng = np.random.default_rng(seed)
    prompt = Prompt(rng.normal(size=(n, D)), rng.normal(size=n), rng.normal(size=D), np.zeros(()))
    weights = 0.3 * rng.normal(size=(2, L, 2, D + 1, D + 1))
    return jax.tree.map(jnp.asarray, (prompt, linear_attention.Params(*weights)))


def test_upper_bounds_are_what_the_triangle_inequality_leaves():
    prompt, params = draw()
    w_v, w_q = np.asarray(params.w_pv[:, 0]), np.asarray(params.w_kq[:, 0])
    w_k = np.random.default_rng(1).normal(size=w_q.shape)
    merged = linear_attention.Params((w_k.mT @ w_q)[:, None], w_v[:, None])
    path, demonstrations = trajectory(merged, prompt), np.asarray(tokens(prompt))[:-1]
    upper = np.asarray(upper_bounds(path, w_v, w_k, w_q, demonstrations))
    assert upper.shape == (L,)
    for t, before in enumerate(np.asarray(path.maps)[:-1]):
        rows = demonstrations @ before.T
        outer = [np.outer(w_v[t] @ h, w_k[t] @ h) for h in rows]
        lengths = np.linalg.norm(outer, axis=(1, 2))
        np.testing.assert_allclose(upper[t], lengths.mean() * np.linalg.norm(w_q[t]))
        assert np.linalg.norm(np.mean(outer, axis=0) @ w_q[t]) <= upper[t]
    with pytest.raises(AssertionError, match=r"\[L, e, e\]"):
        upper_bounds(path, params.w_pv, w_k, w_q, demonstrations)


@pytest.mark.parametrize("n", [N, 2100])  # walked through, and replaced by its second moment
def test_a_query_that_is_read_is_one_more_demonstration(n):
    prompt, params = draw(n=n)
    path = trajectory(params, prompt, keys="all")
    assert path.residual < 1e-10
    assert np.abs(path.maps - trajectory(params, prompt).maps).max() > 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_rank_counts_what_is_above_the_rounding_of_the_updates(dtype):
    eps = np.finfo(dtype).eps
    above, below = 15 * 4 * eps, 5 * 4 * eps  # the threshold is 10 e eps times the largest
    updates = np.stack([scale * np.diag([1.0, 0.1, above, below]) for scale in (1e-3, 1e3)])
    path = implicit_gd.Trajectory(None, updates.astype(dtype), None)
    assert implicit_gd.ranks(path).tolist() == [3, 3]


def test_models_without_a_common_map_are_refused():
    prompt, params = draw()
    with pytest.raises(ValueError, match=r"keys is 'causal'.*no common layer map"):
        implicit_gd.trajectory(params, prompt, keys="causal")
    with pytest.raises(ValueError, match="'demonstration'"):
        implicit_gd.trajectory(params, prompt, keys="demonstration")
    softmax = transformer.Params(*jnp.zeros((4, L, 2, D + 1, D + 1)))
    with pytest.raises(TypeError, match=r"not .*transformer.*\.Params, since softmax"):
        implicit_gd.trajectory(softmax, prompt)
    with pytest.raises(AssertionError, match="vmap"):
        implicit_gd.implicit_update(*jnp.zeros((3, 2, 2)), jnp.zeros((5, 4, 2)))


def test_ranks_of_an_overflown_stream_are_refused():
    broken = implicit_gd.Trajectory(None, np.full((L, 2, 2), np.nan), None)
    with pytest.raises(ValueError, match="NaN"):
        implicit_gd.ranks(broken)


def test_implied_weights_of_softmax_are_its_sensitivities():
    config = transformer.Config(D + 1, 2, 2, 3, mlp_width=5, norm=True)
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), shapes)
    prompt, _ = draw()

    @jax.jit
    def prediction(shift):
        shifted = prompt.replace(x_query=prompt.x_query + shift)
        return transformer.predict(params, tokens(shifted), config)

    forward = functools.partial(transformer.forward, config=config)
    found = implied_weights(forward, params, prompt)
    step = 1e-5 * np.eye(D)
    slopes = [(prediction(s) - prediction(-s)) / 2e-5 for s in step]
    assert found.shape == (3, D)
    np.testing.assert_allclose(found[-1], slopes, atol=1e-8)


def test_both_readings_of_the_mlp_are_what_its_tokens_do():
    rng = np.random.default_rng(0)
    w_mlp, update, token = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)
    attended = update @ token
    relaxed = implicit_gd.relaxed_mlp_update(w_mlp, update) @ token
    np.testing.assert_allclose(relaxed, w_mlp @ attended)
    after = token + attended
    block = implicit_gd.block_mlp_update(w_mlp, update) @ token
    np.testing.assert_allclose(token + block, after + w_mlp @ after)
