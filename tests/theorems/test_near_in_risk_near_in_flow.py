"""A stack that is near the Bayes rule in risk is near it in flows, E|∇δ|² ≤ D Var δ + a tail, and
near flows have near ratios.

Gaussian labels or tokens, masked linear attention, of degree D = 3^L - 1 in them. docs/theory,
"Near in risk, near in flow".
"""

from functools import partial

import jax
import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.special import factorial

from draws import draw_stack, jit_numpy, seeds
from lsa_lab import estimators
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from population import gauss_hermite, predict

NOISE = 0.7


@partial(jit_numpy, static_argnums=0)
def answers(rule, demonstrations, x_query, *params):  # [Q, n, 2] -> [Q], flows [Q, n, 2]
    def answer(rows):
        x, y = rows[:, :1], rows[:, 1]
        if rule == "network":
            return predict(*params, x, y, x_query)
        return estimators.gaussian_posterior_mean(Prompt(x, y, x_query, y[0]), 1.0, NOISE) @ x_query

    return jax.vmap(jax.value_and_grad(answer))(demonstrations)


def gap(demonstrations, x_query, params):  # δ [Q], ∇δ [Q, n, 2]
    ours = answers("network", demonstrations, x_query, params)
    best = answers("bayes", demonstrations, x_query)
    return [a - b for a, b in zip(ours, best, strict=True)]


def squares_by_degree(value, z, mass):  # -> E δ_k² [10], of the parts of Hermite's expansion
    bases = [hermevander(column, 9) / np.sqrt(factorial(np.arange(10))) for column in z.T]
    squares = np.einsum("q,qi,qj,q->ij", mass, *bases, value) ** 2
    return np.array([np.trace(squares[:, ::-1], 9 - k) for k in range(10)])


def distance_and_variance(seed, make_stack, law=None):
    """E ∇δᵀC∇δ, Var δ and Σ k E δ_k² by the two labels, C = XXᵀ + σ²I, of given covariates."""
    rng = np.random.default_rng(seed)
    (x, x_query), (z, mass) = rng.normal(size=(2, 2)), law or gauss_hermite((12, 12))
    root = np.linalg.cholesky(np.outer(x, x) + NOISE * np.eye(2))
    demonstrations = np.stack([np.broadcast_to(x, z.shape), z @ root.T], -1)
    value, flow = gap(demonstrations, x_query[:1], make_stack(rng, x))
    distance = mass @ ((flow[..., 1] @ root) ** 2).sum(1)
    variance = mass @ value**2 - (mass @ value) ** 2
    return distance, variance, squares_by_degree(value, z, mass) @ np.arange(10)


def ridge_and_squares(rng, x):
    """One layer that answers as ridge does, and adds squares of the labels."""
    score, square = 2 / (x @ x + NOISE), rng.uniform(0.5, 1)
    return Params(np.array([[[[score, 0], [square, 0]]]]), np.diag([0.0, -1.0])[None, None])


@seeds
def test_the_distance_of_flows_is_between_the_variance_and_degree_times_it(seed):
    for depth in (1, 2):
        case = seed, lambda rng, _, depth=depth: draw_stack(rng, depth, 1, 2, 0.25)
        distance, variance, levels = distance_and_variance(*case)
        np.testing.assert_allclose(distance, levels, rtol=1e-9)
        assert variance * (1 - 1e-9) <= distance <= (3**depth - 1) * variance * (1 + 1e-9)
    steps = np.random.default_rng(seed).uniform(0.1, 1, 3)  # both ends are reached
    descent = constructions.gradient_descent(steps, 1)
    for factor, make_stack in ((2, ridge_and_squares), (1, lambda *_: descent)):
        distance, variance, _ = distance_and_variance(seed, make_stack)
        np.testing.assert_allclose(distance, factor * variance, rtol=1e-9)


def test_control_of_labels_that_are_not_gaussian_it_fails():
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.full(4, 0.25)
    distance, variance, _ = distance_and_variance(0, ridge_and_squares, corners)
    assert distance > 3 * variance


@seeds
def test_of_tokens_the_bayes_rule_adds_its_tail(seed):  # of one, D = 2; ridge has all degrees
    rng, (z, mass) = np.random.default_rng(seed), gauss_hermite((120, 120))
    w, x_query, params = rng.normal(), rng.normal(size=1), draw_stack(rng, 1, 1, 2, 0.25)
    root = np.linalg.cholesky(np.array([[1, w], [w, w**2 + NOISE]]))
    tokens = (z @ root.T)[:, None]

    def excess(value, flow):  # E|∇|² in the metric of a token, less D times the variance
        square = ((flow[:, 0] @ root) ** 2).sum(1) - 2 * value**2
        return mass @ square + 2 * (mass @ value) ** 2, squares_by_degree(value, z, mass)

    less, levels = excess(*gap(tokens, x_query, params))
    tail, bayes = excess(*answers("bayes", tokens, x_query))
    np.testing.assert_allclose(less, tail + bayes[1] - levels[1], rtol=1e-5, atol=1e-6)
    assert tail + bayes[1] > 0


def least_variance(w, noise_var, covariance):  # λ_min of the covariance of (x, w·x + ε)
    along = covariance @ w
    moment = np.block([[covariance, along[:, None]], [along[None], w @ along + noise_var]])
    return np.linalg.eigvalsh(moment)[0]


@seeds
def test_the_least_variance_of_a_token_is_bounded(seed):
    rng = np.random.default_rng(seed)
    w, noise_var = (
        rng.normal(size=rng.integers(1, 6)) * 10 ** rng.uniform(-2, 1, 1),
        10 ** rng.uniform(-2, 1),
    )
    bound = noise_var / (1 + w @ w + noise_var)
    assert bound * (1 - 1e-9) <= least_variance(w, noise_var, np.eye(len(w)))


def test_the_bound_is_reached_where_the_task_is_large_and_control_smaller_covariates_have_none():
    least = least_variance(np.full(1, 1e3), 1.0, np.eye(1))
    np.testing.assert_allclose(least, 1 / (2 + 1e6), rtol=1e-5)
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
