"""A stack that is near the Bayes rule in risk is near it in flows, E|∇δ|² ≤ D Var δ + a tail, and
near flows have near ratios.

Gaussian labels or tokens, masked linear attention, of degree D = 3^L - 1 in them. docs/theory,
"Near in risk, near in flow".
"""

import jax
import numpy as np

from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params
from population import gauss_hermite, predict

NOISE = 0.7


@jit_numpy
def answer(params, demonstrations, x_query):  # [Q, n, 2] -> [Q], flows [Q, n, 2]
    run = jax.value_and_grad(lambda rows: predict(params, rows[:, :1], rows[:, 1], x_query))
    return jax.vmap(run)(demonstrations)


def answer_bayes(demonstrations, x_query):  # by E(w | prompt) = x·y/(|x|² + σ²), w ~ N(0, 1)
    x, y = np.moveaxis(demonstrations, -1, 0)
    size = (x**2).sum(1, keepdims=True) + NOISE
    mean = (x * y).sum(1, keepdims=True) / size
    flows = np.stack([(y - 2 * mean * x) / size, x / size], -1)
    return x_query * mean[:, 0], x_query * flows


def distance_and_variance(params, x, x_query, law):
    """E ∇δᵀC∇δ and Var δ by the two labels, C = XXᵀ + σ²I, of given covariates."""
    root, (z, mass) = np.linalg.cholesky(np.outer(x, x) + NOISE * np.eye(2)), law
    demonstrations = np.stack([np.broadcast_to(x, z.shape), z @ root.T], -1)
    answers, flows = answer(params, demonstrations, x_query)
    best, best_flows = answer_bayes(demonstrations, x_query)
    distance = mass @ (((flows - best_flows)[..., 1] @ root) ** 2).sum(1)
    return distance, mass @ (answers - best) ** 2 - (mass @ (answers - best)) ** 2


@seeds
def test_the_distance_of_flows_is_between_the_variance_and_degree_times_it(seed):
    rng = np.random.default_rng(seed)
    x, x_query, grid = rng.normal(size=2), rng.normal(size=1), gauss_hermite((12, 12))
    cases = [(1, 3**depth - 1, draw_stack(rng, depth, 1, 2, 0.25)) for depth in (1, 2)]
    descent = constructions.gradient_descent(rng.uniform(0.1, 1, 2), 1)
    # One layer answers as ridge does, and adds squares of the labels: both ends are reached.
    w_kq = np.array([[2 / (x @ x + NOISE), 0], [rng.uniform(0.5, 1), 0]])
    squares = Params(w_kq[None, None], np.diag([0.0, -1.0])[None, None])
    cases += [(1, 1, descent), (2, 2, squares)]
    for low, high, params in cases:
        distance, variance = distance_and_variance(params, x, x_query, grid)
        assert low * variance * (1 - 1e-9) <= distance <= high * variance * (1 + 1e-9)
    # Control: labels that are not Gaussian.
    signs = np.tile([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], (36, 1))
    law = signs, np.full(144, 1 / 144)
    distance, variance = distance_and_variance(squares, x, x_query, law)
    assert distance > 3 * variance


@seeds
def test_of_tokens_the_bayes_rule_adds_its_tail(seed):  # of one, D = 2; ridge has all degrees
    rng, (z, mass) = np.random.default_rng(seed), gauss_hermite((120, 120))
    w, x_query, params = rng.normal(), rng.normal(size=1), draw_stack(rng, 1, 1, 2, 0.25)
    root = np.linalg.cholesky(np.array([[1, w], [w, w**2 + NOISE]]))
    tokens = (z @ root.T)[:, None]

    def excess(value, flow):  # E|∇|² less D times the variance, and the squares of degree 1
        square = ((flow[:, 0] @ root) ** 2).sum(1) - 2 * value**2
        return mass @ square + 2 * (mass @ value) ** 2, ((mass * value @ z) ** 2).sum()

    network, bayes = answer(params, tokens, x_query), answer_bayes(tokens, x_query)
    less, linear = excess(*(a - b for a, b in zip(network, bayes, strict=True)))
    tail, bayes_linear = excess(*bayes)
    np.testing.assert_allclose(less, tail + bayes_linear - linear, rtol=1e-5, atol=1e-6)
    assert tail + bayes_linear > 0


def least_variance(w, noise_var, covariance):  # λ_min of the covariance of (x, w·x + ε)
    along = covariance @ w
    moment = np.block([[covariance, along[:, None]], [along[None], w @ along + noise_var]])
    return np.linalg.eigvalsh(moment)[0]


@seeds
def test_the_least_variance_of_a_token_is_bounded_and_large_tasks_reach_the_bound(seed):
    rng = np.random.default_rng(seed)
    w, noise_var = rng.normal(size=rng.integers(1, 6)), 10 ** rng.uniform(-2, 1)
    w *= 10 ** rng.uniform(-2, 1)
    bound = noise_var / (1 + w @ w + noise_var)
    assert bound * (1 - 1e-9) <= least_variance(w, noise_var, np.eye(len(w)))
    np.testing.assert_allclose(least_variance(np.full(1, 1e3), 1, np.eye(1)) * 1e6, 1, rtol=1e-5)
    # Control: with smaller covariates the bound does not hold.
    assert least_variance(np.ones(1), 1.0, np.eye(1) / 10) < 1 / 3


def change_of_log_ratio(best, away):
    flows, ideal = (np.linalg.norm(rows, axis=1) for rows in (best + away, best))
    return abs(np.log(flows[0] / flows[1]) - np.log(ideal[0] / ideal[1]))


@seeds
def test_near_flows_have_near_ratios(seed):
    rng = np.random.default_rng(seed)
    best, away = rng.normal(size=(2, 2, 4))
    share = rng.uniform(0, 0.99)
    away *= share * (np.linalg.norm(best, axis=1) / np.linalg.norm(away, axis=1))[:, None]
    limit = np.log((1 + share) / (1 - share))
    assert change_of_log_ratio(best, away) <= limit * (1 + 1e-9)
    signs = np.array([[share], [-share]])  # one along its flow, one against: the end of the bound
    np.testing.assert_allclose(change_of_log_ratio(best, signs * best), limit, atol=1e-9)
    # Control: one flow that is far.
    assert change_of_log_ratio(np.eye(2), np.diag([0.1, -0.9])) > np.log(1.1 / 0.9)
