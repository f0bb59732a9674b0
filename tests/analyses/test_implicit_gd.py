"""The implicit updates of a prompt that reads its query, and the implied weights of softmax."""

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


PROMPT, _ = draw()


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
