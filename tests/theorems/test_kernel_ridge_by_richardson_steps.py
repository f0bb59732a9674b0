"""Softmax attention among tokens of one length iterates to kernel ridge regression.

docs/theory, "Kernel ridge by attention".
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.models.blocks import attention_weights

N, D, WIDTH, PENALTY, STEPS = 7, 3, 0.8, 0.5, 60


@jit_numpy
def richardson(x, y):  # [steps + 1, n]
    """a ← a + η D⁻¹(y - (K + λI)a): a softmax gives D⁻¹Ka, and D is each token's own number."""
    everyone = jnp.ones((N, N), bool)
    stochastic = attention_weights(x / WIDTH**2, x, everyone, "softmax")  # D⁻¹K
    sums = 1 / jnp.diagonal(stochastic)  # D, for K_ii = 1
    step = 1 / (1 + PENALTY / sums.min())

    def advance(a, _):
        a = a + step * ((y - PENALTY * a) / sums - stochastic @ a)
        return a, a

    return jax.lax.scan(advance, jnp.zeros(N), None, length=STEPS)[1]


def errors_and_bounds(seed, one_length=True):  # [steps], in the metric of D, a Gaussian kernel's
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(N, D)), rng.normal(size=N)
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if one_length else x
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / (2 * WIDTH**2))
    sums, system = kernel.sum(1), kernel + PENALTY * np.eye(N)
    scaled = system / np.sqrt(sums)[:, None] / np.sqrt(sums)[None]
    rate = np.abs(1 - np.linalg.eigvalsh(scaled) / (1 + PENALTY / sums.min())).max()
    assert rate < 1
    limit = np.linalg.solve(system, y)
    sizes = np.sqrt(((richardson(x, y) - limit) ** 2 * sums).sum(1))
    return sizes, np.sqrt((sums * limit**2).sum()) * rate ** np.arange(1, STEPS + 1)


@seeds
def test_each_step_contracts_the_distance_to_kernel_ridge_regression(seed):
    errors, bounds = errors_and_bounds(seed)
    assert (errors <= (1 + 1e-9) * bounds + 1e-12).all()
    # Control: among covariates of many lengths it goes elsewhere.
    errors, bounds = errors_and_bounds(seed, one_length=False)
    assert errors[-1] > bounds[-1]
