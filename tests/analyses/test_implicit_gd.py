"""The implicit updates of a prompt that reads its query, and the implied weights of softmax."""

import functools

import numpy as np
import pytest

from draws import draw_prompt, draw_stack, draw_weights, jit_numpy
from lsa_lab.analyses import implicit_gd
from lsa_lab.models import transformer
from lsa_lab.prompts import tokens

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
    config, rng = (
        transformer.Config(D + 1, 2, 2, 3, mlp_width=5, norm=True),
        np.random.default_rng(0),
    )
    prompt, params = draw_prompt(rng, 8, D), draw_weights(rng, transformer.init, config, 0.5)

    @jit_numpy
    def predict(shift):
        shifted = prompt.replace(x_query=prompt.x_query + shift)
        return transformer.predict(params, tokens(shifted), config)

    forward = functools.partial(transformer.forward, config=config)
    weights = jit_numpy(implicit_gd.implied_weights, static_argnums=0)(forward, params, prompt)
    assert weights.shape == (3, D)
    slopes = [(predict(step) - predict(-step)) / 2e-5 for step in 1e-5 * np.eye(D)]
    np.testing.assert_allclose(weights[-1], slopes, atol=1e-8)
