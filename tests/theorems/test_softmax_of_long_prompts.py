"""Softmax attention to many Gaussian tokens is a linear map of the query.

The limit is VΓk; the models attend to 4 000 tokens. docs/theory, "Softmax at long prompts".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy
from lsa_lab.models.blocks import attention_weights

N, PROMPTS = 4000, 400
ROOT = np.array([[1.0, 0.0], [0.4, 0.7]])
GAMMA = ROOT @ ROOT.T
VALUES, KEY = np.array([1.0, -0.5]), np.array([0.9, 0.3])  # KEY is Wᵀ_K of the query
STRETCH, LIMIT = np.exp(KEY @ GAMMA @ KEY), VALUES @ GAMMA @ KEY
VARIANCE = STRETCH * (VALUES @ GAMMA @ VALUES + LIMIT**2)  # of √n (read - limit)


@jit_numpy
def reads(z):  # [B, n, 2] -> [B]
    def read(tokens):
        mask = jnp.ones((1, N), bool)
        return (
            attention_weights(jnp.asarray(KEY)[None], tokens, mask, "softmax")[0] @ tokens @ VALUES
        )

    return jax.lax.map(read, z)


def test_attention_to_many_tokens_scatters_about_the_limit_as_stated():
    z = np.random.default_rng(0).normal(size=(PROMPTS, N, 2)) @ ROOT.T
    errors = np.sqrt(N) * (reads(z) - LIMIT)
    assert abs(errors.mean()) < 4 * (VARIANCE / PROMPTS) ** 0.5 + 2 * STRETCH / N**0.5
    assert abs(errors.var() / VARIANCE - 1) < 4 * (2 / PROMPTS) ** 0.5
    # Controls: without VΓk kᵀΓVᵀ, and without the stretch, it is another variance.
    for wrong in (VARIANCE - STRETCH * LIMIT**2, VARIANCE / STRETCH):
        assert abs(errors.var() / wrong - 1) > 4 * (2 / PROMPTS) ** 0.5


def test_control_for_skewed_tokens_of_the_same_covariance_the_limit_is_another():
    z = (np.random.default_rng(0).exponential(size=(PROMPTS, N, 2)) - 1) @ ROOT.T
    errors = np.sqrt(N) * (reads(z) - LIMIT)
    assert abs(errors.mean()) > 20 * (VARIANCE / PROMPTS) ** 0.5
