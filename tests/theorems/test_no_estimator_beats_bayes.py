"""No estimator beats the Bayes rule on any prompt: it pays its distance from the posterior mean.

Given a prompt, E|ŵ - w|²_Λ - E|ŵ_B - w|²_Λ = |ŵ - ŵ_B|²_Λ for every estimator ŵ and every Λ, where
ŵ_B = E(w | prompt); classical. Expectations are sums on a grid, support by support, which err by
e^{-2π² (s/h)²}, h the step and s ≥ .27 the posterior's deviation. docs/theory, "The order of
estimators".
"""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

from draws import jit_numpy, seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

SPARSITY = 2
N, D, SIGNAL_VAR, NOISE_VAR = 4, 3, 1.0, 1.0
GRID = np.linspace(-7, 7, 57)
posterior_mean = jit_numpy(estimators.sparse_posterior_mean, static_argnums=1)


@jit_numpy
def estimates(prompt):
    zeros, halves = jnp.zeros(5), jnp.full(5, 0.5)
    return {
        "ridge": estimators.ridge(prompt, NOISE_VAR / (N * SIGNAL_VAR)),
        "lasso": estimators.lasso(prompt, 0.2),
        "preprocessed": estimators.mixed_gradient_descent(prompt, zeros, halves)[-1],
        "one step": estimators.gradient_descent(prompt, halves[:1])[-1],
        "least squares": estimators.ols(prompt),
        "zero": jnp.zeros(D),
    }


def posterior(prompt):  # [P, d], [P]
    """All weights on a grid with exactly so many non-zeros, and their probabilities."""
    weights, nodes = [], np.stack(np.meshgrid(*[GRID] * SPARSITY), -1).reshape(-1, SPARSITY)
    for support in map(list, itertools.combinations(range(D), SPARSITY)):
        weights.append(np.zeros((len(nodes), D)))
        weights[-1][:, support] = nodes
    weights = np.concatenate(weights)
    residuals = prompt.y - weights @ prompt.x.T
    misfit = (residuals**2).sum(1) / NOISE_VAR + (weights**2).sum(1) / SIGNAL_VAR
    mass = np.exp(-(misfit - misfit.min()) / 2)
    return weights, mass / mass.sum()


def excesses(seed, believed):
    """What every rule pays above the Bayes rule of ``believed`` sparsity, and its distance."""
    rng = np.random.default_rng(seed)
    x, root = rng.uniform(-1, 1, size=(N, D)), rng.normal(size=(D, D))
    prompt = Prompt(x, rng.normal(size=N), np.zeros(D), np.zeros(()))
    rules = estimates(prompt)
    rules |= {s: posterior_mean(prompt, s, SIGNAL_VAR, NOISE_VAR) for s in (1, 2, 3)}
    weights, mass = posterior(prompt)

    def risk(estimate):
        return mass @ (((weights - estimate) @ root) ** 2).sum(1)

    best = rules[believed]
    distances = {name: (((w - best) @ root) ** 2).sum() for name, w in rules.items()}
    return {name: risk(w) - risk(best) for name, w in rules.items()}, distances


@settings(max_examples=8)
@seeds
def test_every_rule_pays_its_distance_from_the_bayes_rule(seed):
    paid, distances = excesses(seed, SPARSITY)
    for name, distance in distances.items():
        assert abs(paid[name] - distance) < 1e-10 * (1 + distance)


@pytest.mark.parametrize("believed", [1, 3])
def test_control_the_bayes_rule_of_another_sparsity_is_beaten(believed):
    paid, distances = excesses(0, believed)
    assert paid[SPARSITY] < -1e-3
    assert max(abs(paid[name] - distances[name]) for name in paid) > 1e-2
