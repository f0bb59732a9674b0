"""The implicit updates of a prompt: shapes, refusals, and known paths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import linear_attention, transformer
from lsa_lab.prompts import Prompt, tokens

N, D, L = 8, 3, 4
trajectory = jit_numpy(implicit_gd.trajectory, static_argnames="keys")


def draw(n=N):
    rng = np.random.default_rng(0)
    prompt = Prompt(rng.normal(size=(n, D)), rng.normal(size=n), rng.normal(size=D), np.zeros(()))
    weights = 0.3 * rng.normal(size=(2, L, 2, D + 1, D + 1))
    return jax.tree.map(jnp.asarray, (prompt, linear_attention.Params(*weights)))


PROMPT, PARAMS = draw()


def test_upper_bounds_are_those_of_the_triangle_inequality():
    w_v, w_q = np.asarray(PARAMS.w_pv[:, 0]), np.asarray(PARAMS.w_kq[:, 0])
    w_k = np.random.default_rng(1).normal(size=w_q.shape)
    merged = linear_attention.Params((w_k.mT @ w_q)[:, None], w_v[:, None])
    path, demonstrations = trajectory(merged, PROMPT), np.asarray(tokens(PROMPT))[:-1]
    upper = jit_numpy(implicit_gd.upper_bounds)(path, w_v, w_k, w_q, demonstrations)
    assert upper.shape == (L,)
    for t, before in enumerate(path.maps[:-1]):
        outer = [np.outer(w_v[t] @ h, w_k[t] @ h) for h in demonstrations @ before.T]
        lengths = np.linalg.norm(outer, axis=(1, 2))
        np.testing.assert_allclose(upper[t], lengths.mean() * np.linalg.norm(w_q[t]))
        assert np.linalg.norm(np.mean(outer, axis=0) @ w_q[t]) <= upper[t]


@pytest.mark.parametrize("n", [N, 2100])  # the forward pass takes all, or a summary
def test_a_query_that_is_read_is_one_more_demonstration(n):
    prompt, params = draw(n)
    path = trajectory(params, prompt, keys="all")
    assert path.residual < 1e-10
    assert np.abs(path.maps - trajectory(params, prompt).maps).max() > 1e-5


def test_implied_weights_of_softmax_are_its_sensitivities():
    config = transformer.Config(D + 1, 2, 2, 3, mlp_width=5, norm=True)
    shapes = jax.eval_shape(lambda key: transformer.init(key, config), jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), shapes)

    @jit_numpy
    def predict(shift):
        shifted = PROMPT.replace(x_query=PROMPT.x_query + shift)
        return transformer.predict(params, tokens(shifted), config)

    forward = functools.partial(transformer.forward, config=config)
    weights = jit_numpy(implicit_gd.implied_weights, static_argnums=0)(forward, params, PROMPT)
    assert weights.shape == (3, D)
    slopes = [(predict(step) - predict(-step)) / 2e-5 for step in 1e-5 * np.eye(D)]
    np.testing.assert_allclose(weights[-1], slopes, atol=1e-8)


def test_both_readings_of_the_mlp_act_on_tokens_as_stated():
    w_mlp, update, token = np.split(np.random.default_rng(0).normal(size=(9, 4)), [4, 8])
    attended = update @ token[0]
    relaxed = implicit_gd.relaxed_mlp_update(w_mlp, update) @ token[0]
    np.testing.assert_allclose(relaxed, w_mlp @ attended)
    after = token[0] + attended
    block = implicit_gd.block_mlp_update(w_mlp, update) @ token[0]
    np.testing.assert_allclose(token[0] + block, after + w_mlp @ after)


FACTORED = transformer.Params(*jnp.zeros((4, L, 2, D + 1, D + 1)))
REFUSED = {
    "causal": (
        lambda: implicit_gd.trajectory(PARAMS, PROMPT, keys="causal"),
        "keys is 'causal'.*no common layer map",
    ),
    "keys": (
        lambda: implicit_gd.trajectory(PARAMS, PROMPT, keys="demonstration"),
        "'demonstration'",
    ),
    "softmax": (
        lambda: implicit_gd.trajectory(FACTORED, PROMPT),
        r"not .*transformer.*\.Params: softmax",
    ),
    "batch": (
        lambda: implicit_gd.implicit_update(*jnp.zeros((3, 2, 2)), jnp.zeros((5, 4, 2))),
        "vmap",
    ),
    "heads": (
        lambda: implicit_gd.upper_bounds(
            implicit_gd.trajectory(PARAMS, PROMPT), *3 * [PARAMS.w_pv], tokens(PROMPT)
        ),
        r"\[L, e, e\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_calls_without_a_meaning_are_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((AssertionError, TypeError, ValueError), match=message):
        call()
