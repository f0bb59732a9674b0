"""Softmax attention among tokens of one length iterates to kernel ridge regression.

docs/theory, "Kernel ridge by attention". Sides: steps of softmax attention; one solve with the
Gaussian kernel. Hypotheses: covariates of one length, so that a softmax is a Gaussian kernel.
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds
from lsa_lab.models.blocks import attention_weights

N, D, WIDTH, PENALTY, STEPS = 7, 3, 0.8, 0.5, 60


@jax.jit
def richardson(x, y, penalties):  # [steps + 1, n]
    """a ← a + η D⁻¹(y - (K + λI)a): a softmax gives D⁻¹Ka, and D is each token's own number."""
    everyone = jnp.ones((N, N), bool)
    stochastic = attention_weights(x / WIDTH**2, x, everyone, "softmax")  # D⁻¹K
    sums = 1 / jnp.diagonal(stochastic)  # D, for K_ii = 1
    step = 1 / (1 + penalties / sums.min())

    def advance(a, _):
        a = a + step * ((y - penalties * a) / sums - stochastic @ a)
        return a, a

    return jax.lax.scan(advance, jnp.zeros(N), None, length=STEPS)[1]


def draw(seed, one_length=True):
    generator = np.random.default_rng(seed)
    x, y = generator.normal(size=(N, D)), generator.normal(size=N)
    return (x / np.linalg.norm(x, axis=1, keepdims=True) if one_length else x), y


def solution(x, y):
    """The coefficients, D of the Gaussian kernel, and the contraction of one step."""
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    kernel = np.exp(-squares / (2 * WIDTH**2))
    sums, system = kernel.sum(1), kernel + PENALTY * np.eye(N)
    scaled = system / np.sqrt(sums)[:, None] / np.sqrt(sums)[None]
    step = 1 / (1 + PENALTY / sums.min())
    return np.linalg.solve(system, y), sums, np.abs(1 - step * np.linalg.eigvalsh(scaled)).max()


@seeds
def test_each_step_contracts_the_distance_to_kernel_ridge_regression(seed):
    x, y = draw(seed)
    limit, sums, rate = solution(x, y)
    errors = np.asarray(richardson(x, y, PENALTY)) - limit
    sizes = np.sqrt((sums * errors**2).sum(1))
    start = np.sqrt((sums * limit**2).sum())
    assert rate < 1
    assert (sizes <= (1 + 1e-9) * start * rate ** np.arange(1, STEPS + 1) + 1e-12).all()


@seeds
def test_control_among_covariates_of_many_lengths_it_goes_elsewhere(seed):
    x, y = draw(seed, one_length=False)
    limit, sums, rate = solution(x, y)
    errors = np.asarray(richardson(x, y, PENALTY))[-1] - limit
    bound = np.sqrt((sums * limit**2).sum()) * rate**STEPS
    assert np.sqrt((sums * errors**2).sum()) > bound
