"""Attention runs algorithms: TD(0), kernel ridge regression, and the training of an inner model.

Layers of linear attention on tokens [φ, γφ', r] evaluate a policy by TD(0), which is no gradient.
Softmax attention among tokens of one length iterates to kernel ridge regression. A layer that
trains the last layer of an inner model with fixed features on its keys is linear attention.
docs/theory, "In-context TD(0)", "Kernel ridge by attention", "Inner training is attention".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import forward, jit_numpy, relative_error, seeds, sizes, temporal_difference
from lsa_lab.models import trace
from lsa_lab.models.blocks import attention_weights
from population import token_states

TD_STEPS, GAMMA = np.array([0.3, 0.2, 0.25]), 0.9
WIDTH, PENALTY, STEPS = 0.8, 0.5, 60  # of kernel ridge regression


def evaluate(features, following, rewards, query, directions):  # [L+1]
    """The value of the query after each step along the directions [n, d]."""
    w = np.zeros(len(query))
    path = [w]
    for step in TD_STEPS:
        errors = rewards + GAMMA * following @ w - features @ w
        w = w + step / len(rewards) * errors @ directions
        path.append(w)
    return np.array(path) @ query


@sizes
@seeds
def test_each_layer_is_a_step_of_temporal_difference_learning(n, d, seed):
    rng = np.random.default_rng(seed)
    features, following = rng.normal(size=(2, n, d))
    rewards, query = rng.normal(size=n), rng.normal(size=d)
    rows = np.concatenate([features, GAMMA * following, rewards[:, None]], 1)
    rows = np.vstack([rows, np.r_[query, np.zeros(d + 1)]])
    params = temporal_difference(TD_STEPS, d)
    found = trace.layer_predictions(forward(params, rows))
    case = features, following, rewards, query
    assert relative_error(found, evaluate(*case, features)) < 1e-10
    if d == 3:  # Control: descent on squared errors also uses the features of the next state
        descent = evaluate(*case, features - GAMMA * following)
        assert np.abs(found - descent).max() > 1e-3 * np.abs(found).max()


@jit_numpy
def richardson(x, y):  # [steps + 1, n]
    """a ← a + η D⁻¹(y - (K + λI)a): a softmax gives D⁻¹Ka, and D is each token's own number."""
    everyone = jnp.ones((7, 7), bool)
    stochastic = attention_weights(x / WIDTH**2, x, everyone, "softmax")  # D⁻¹K
    sums = 1 / jnp.diagonal(stochastic)  # D, for K_ii = 1
    step = 1 / (1 + PENALTY / sums.min())

    def advance(a, _):
        a = a + step * ((y - PENALTY * a) / sums - stochastic @ a)
        return a, a

    return jax.lax.scan(advance, jnp.zeros(7), None, length=STEPS)[1]


def errors_and_bounds(seed, one_length=True):  # [steps], in the metric of D, a Gaussian kernel's
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if one_length else x
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / (2 * WIDTH**2))
    sums, system = kernel.sum(1), kernel + PENALTY * np.eye(7)
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


N, K, V, FEATURES, STEP = 6, 3, 2, 4, 0.4


def loss(inner, k, v):  # no square: the root of 1 + |error|²
    w, u = inner
    return jnp.sqrt(1 + ((w @ jnp.tanh(u @ k) - v) ** 2).sum())


@jit_numpy
def read(w, u, keys, values, query, together, features_too=0.0):
    """After a step on every token, with all slopes at the first inner model if ``together``."""
    inner = first = (w, u)
    for k, v in zip(keys, values, strict=True):
        at = [jnp.where(together, a, b) for a, b in zip(first, inner, strict=True)]
        step = jax.grad(loss)(tuple(at), k, v)
        rates = STEP, STEP * features_too
        inner = tuple(a - rate * b for a, rate, b in zip(inner, rates, step, strict=True))
    return inner[0] @ jnp.tanh(inner[1] @ query)


def attention(w, u, keys, values, query, together):
    """W₀φ(q) + Σ_i ṽ_i φ(k_i)·φ(q), ṽ_i of the token alone, or of all up to it."""
    features, of_query = np.tanh(keys @ u.T), np.tanh(u @ query)
    written = np.zeros((N, V))
    for i in range(N):
        before = w @ features[i] + (0 if together else written[:i].T @ (features[:i] @ features[i]))
        error = before - values[i]
        written[i] = -STEP * error / np.sqrt(1 + error @ error)  # the slope of the loss
    return w @ of_query + written.T @ (features @ of_query)


@seeds
def test_the_read_is_a_sum_over_keys_without_order_if_steps_are_together(seed):
    rng = np.random.default_rng(seed)
    shapes = (V, FEATURES), (FEATURES, K), (N, K), (N, V), (K,)
    case = w, u, keys, values, query = [rng.normal(size=shape) for shape in shapes]
    turned = w, u, keys[::-1], values[::-1], query
    for together in (True, False):
        found, stated = read(*case, together), attention(*case, together)
        assert relative_error(found, stated) < 1e-10
        change = relative_error(read(*turned, together), found)
        if together:
            assert change < 1e-12
        if seed == 0:  # Control: steps one by one depend on it, trained features are no such sum
            assert together or change > 1e-2
            assert relative_error(read(*case, together, 1.0), stated) > 1e-2


@pytest.mark.parametrize("inner", [1, 3])
def test_the_ttt_layer_holds_keys_times_the_residuals_of_all_its_inner_steps(inner):
    tokens, written = np.random.default_rng(0).normal(size=(N + 1, K + 1 + V)) / 2, np.zeros((N, V))
    for i, row in enumerate(tokens[:N]):  # the query writes nothing
        for _ in range(inner):
            residual = row[K + 1 :] - written[: i + 1].T @ (tokens[: i + 1, :K] @ row[:K])
            written[i] += row[K] * residual
    found = jit_numpy(token_states("ttt", K, V, inner=inner))(tokens)[-1]
    np.testing.assert_allclose(found, tokens[:N, :K].T @ written, rtol=1e-10, atol=1e-12)
