"""Softmax attention to many Gaussian tokens is a linear map of the query.

docs/theory, "Softmax at long prompts". Sides: the models' attention to 4 000 tokens; the limit VΓk
and its covariance in closed form. Hypotheses: Gaussian tokens.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models.blocks import attention_weights

N, PROMPTS = 4000, 400
ROOT = np.array([[1.0, 0.0], [0.4, 0.7]])
GAMMA = ROOT @ ROOT.T
VALUES = np.array([[1.0, -0.5]])
KEY = np.array([0.9, 0.3])  # Wᵀ_K of the query
STRETCH = np.exp(KEY @ GAMMA @ KEY)
LIMIT = VALUES @ GAMMA @ KEY  # [1]
SPREAD = STRETCH * (VALUES @ GAMMA @ VALUES.T + LIMIT**2)  # [1, 1], of √n (read - limit)


@jax.jit
def reads(z):  # [B, n, 2] -> [B, 1]
    def read(tokens):
        mask = jnp.ones((1, N), bool)
        weights = attention_weights(jnp.asarray(KEY)[None], tokens, mask, "softmax")
        return (weights @ tokens @ VALUES.T)[0]

    return jax.lax.map(read, z)


def test_attention_to_many_tokens_scatters_about_the_limit_as_stated():
    z = np.random.default_rng(0).normal(size=(PROMPTS, N, 2)) @ ROOT.T
    errors = np.sqrt(N) * (np.asarray(reads(z)) - LIMIT)
    assert abs(errors.mean()) < 4 * (SPREAD[0, 0] / PROMPTS) ** 0.5 + 2 * STRETCH / N**0.5
    assert abs(errors.var() / SPREAD[0, 0] - 1) < 4 * (2 / PROMPTS) ** 0.5
    # Controls: without VΓk kᵀΓVᵀ, and without the stretch, it is another covariance.
    for wrong in (SPREAD - STRETCH * LIMIT**2, SPREAD / STRETCH):
        assert abs(errors.var() / wrong[0, 0] - 1) > 4 * (2 / PROMPTS) ** 0.5


def test_control_for_skewed_tokens_of_the_same_covariance_the_limit_is_another():
    z = (np.random.default_rng(0).exponential(size=(PROMPTS, N, 2)) - 1) @ ROOT.T
    errors = np.sqrt(N) * (np.asarray(reads(z)) - LIMIT)
    assert abs(errors.mean()) > 20 * (SPREAD[0, 0] / PROMPTS) ** 0.5
