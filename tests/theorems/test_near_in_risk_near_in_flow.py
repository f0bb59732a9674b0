"""A stack that is near the Bayes rule in risk is near it in flows: E|∇δ|² ≤ D Var δ + a tail.

docs/theory, "Near in risk, near in flow". Hypotheses: Gaussian labels or tokens, masked linear
attention, of degree D = 3^L - 1 in them. Sides: derivatives of the network and of the Bayes rule,
averaged by quadrature; Hermite coefficients of their answers, and D times the variance.
"""

from functools import partial

import jax
import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.special import factorial

from draws import jit_numpy, seeds
from lsa_lab import estimators
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from population import gauss_hermite, predict

NOISE = 0.7
descent = jit_numpy(lambda steps: constructions.gradient_descent(steps, 1))


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


def of_labels(seed, stack, law=gauss_hermite):
    """E ∇δᵀC∇δ, Var δ and Σ k E δ_k² by the two labels, C = XXᵀ + σ²I, of given covariates."""
    rng = np.random.default_rng(seed)
    (x, x_query), (z, mass) = rng.normal(size=(2, 2)), law((12, 12))
    root = np.linalg.cholesky(np.outer(x, x) + NOISE * np.eye(2))
    demonstrations = np.stack([np.broadcast_to(x, z.shape), z @ root.T], -1)
    value, flow = gap(demonstrations, x_query[:1], stack(rng, x))
    variance = mass @ value**2 - (mass @ value) ** 2
    distance = mass @ ((flow[..., 1] @ root) ** 2).sum(1)
    return distance, variance, by_degree(value, z, mass) @ np.arange(10)


def by_degree(value, z, mass):  # -> [10]
    """E δ_k², of the parts of Hermite's expansion."""
    bases = [hermevander(column, 9) / np.sqrt(factorial(np.arange(10))) for column in z.T]
    squares = np.einsum("q,qi,qj,q->ij", mass, *bases, value) ** 2
    return np.array([np.trace(squares[:, ::-1], 9 - k) for k in range(10)])


def random(rng, depth):
    return Params(*rng.normal(size=(2, depth, 1, 2, 2)) / 4)


def ridge_and_squares(rng, x):
    """One layer that answers as ridge does, and adds squares of the labels."""
    score, square = 2 / (x @ x + NOISE), rng.uniform(0.5, 1)
    return Params(np.array([[[[score, 0], [square, 0]]]]), np.diag([0.0, -1.0])[None, None])


@seeds
def test_the_distance_of_flows_is_between_the_variance_and_degree_times_it(seed):
    for depth in (1, 2):
        distance, variance, levels = of_labels(seed, lambda rng, _, depth=depth: random(rng, depth))
        np.testing.assert_allclose(distance, levels, rtol=1e-9)
        assert variance * (1 - 1e-9) <= distance <= (3**depth - 1) * variance * (1 + 1e-9)


@seeds
def test_both_ends_are_reached(seed):
    distance, variance, _ = of_labels(seed, ridge_and_squares)
    np.testing.assert_allclose(distance, 2 * variance, rtol=1e-9)
    steps = np.random.default_rng(seed).uniform(0.1, 1, 3)
    distance, variance, _ = of_labels(seed, lambda *_: descent(steps))
    np.testing.assert_allclose(distance, variance, rtol=1e-9)


def test_control_of_labels_that_are_not_gaussian_it_fails():
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.full(4, 0.25)
    distance, variance, _ = of_labels(0, ridge_and_squares, lambda counts: corners)
    assert distance > 3 * variance


@seeds
def test_of_tokens_the_bayes_rule_adds_its_tail(seed):  # of one, D = 2; ridge has all degrees
    rng, (z, mass) = np.random.default_rng(seed), gauss_hermite((120, 120))
    w, x_query, params = rng.normal(), rng.normal(size=1), random(rng, 1)
    root = np.linalg.cholesky(np.array([[1, w], [w, w**2 + NOISE]]))
    tokens = (z @ root.T)[:, None]

    def excess(value, flow):  # E|∇|² in the metric of a token, less D times the variance
        square = ((flow[:, 0] @ root) ** 2).sum(1) - 2 * value**2
        return mass @ square + 2 * (mass @ value) ** 2, by_degree(value, z, mass)

    less, levels = excess(*gap(tokens, x_query, params))
    tail, own = excess(*answers("bayes", tokens, x_query))
    np.testing.assert_allclose(less, tail + own[1] - levels[1], rtol=1e-5, atol=1e-6)
    assert tail + own[1] > 0
