"""No estimator beats the Bayes rule on any prompt: it pays its distance from the posterior mean.

Given a prompt, E|ŵ - w|²_Λ - E|ŵ_B - w|²_Λ = |ŵ - ŵ_B|²_Λ for every estimator ŵ and every Λ, where
ŵ_B = E(w | prompt) (classical; docs/theory, "The order of estimators"). Sides: the estimators of
the library; expectations over all weights, prior times likelihood summed on a grid, support by
support. Such a sum errs by e^{-2π² (s/h)²}, h the step and s the posterior's least deviation, 0.27
or more here.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import settings

from draws import seeds
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

SPARSITY = 2
N, D, SIGNAL_VAR, NOISE_VAR = 4, 3, 1.0, 1.0
GRID = np.linspace(-7, 7, 57)


def bayes(sparsity):
    return lambda prompt: estimators.sparse_posterior_mean(prompt, sparsity, SIGNAL_VAR, NOISE_VAR)


RULES = {
    "one-sparse": bayes(1),
    "two-sparse": bayes(2),
    "ridge": lambda prompt: estimators.ridge(prompt, NOISE_VAR / (N * SIGNAL_VAR)),
    "lasso": lambda prompt: estimators.lasso(prompt, 0.2),
    "preprocessed": lambda prompt: estimators.mixed_gradient_descent(
        prompt, jnp.zeros(5), jnp.full(5, 0.5)
    )[-1],
    "one step": lambda prompt: estimators.gradient_descent(prompt, jnp.full(1, 0.5))[-1],
    "least squares": estimators.ols,
    "zero": lambda prompt: jnp.zeros(D),
}
estimates_of = jax.jit(lambda prompt: {name: rule(prompt) for name, rule in RULES.items()})
bayes_of = jax.jit(lambda prompt, s: bayes(s)(prompt), static_argnums=1)


def draw(seed):
    """A prompt whose covariates lie in [-1, 1], and a root of Λ."""
    rng = np.random.default_rng(seed)
    x, root = rng.uniform(-1, 1, size=(N, D)), rng.normal(size=(D, D))
    return Prompt(x, rng.normal(size=N), np.zeros(D), np.zeros(())), root


def posterior(prompt, sparsity):  # [P, d], [P]
    """All weights on a grid with exactly ``sparsity`` non-zeros, and their probabilities."""
    weights = []
    for support in map(list, itertools.combinations(range(D), sparsity)):
        nodes = np.stack(np.meshgrid(*[GRID] * sparsity), -1).reshape(-1, sparsity)
        weights.append(np.zeros((len(nodes), D)))
        weights[-1][:, support] = nodes
    weights = np.concatenate(weights)
    residuals = prompt.y - weights @ prompt.x.T
    misfit = (residuals**2).sum(1) / NOISE_VAR + (weights**2).sum(1) / SIGNAL_VAR
    mass = np.exp(-(misfit - misfit.min()) / 2)
    return weights, mass / mass.sum()


def excesses(seed, sparsity, believed):
    """What every rule pays above the Bayes rule of ``believed`` sparsity, and its distance."""
    prompt, root = draw(seed)
    weights, mass = posterior(prompt, sparsity)
    weights, best = weights @ root, np.asarray(bayes_of(prompt, believed)) @ root

    def risk(estimate):
        return mass @ ((weights - estimate) ** 2).sum(1)

    estimates = {name: np.asarray(w) @ root for name, w in estimates_of(prompt).items()}
    least = risk(best)
    paid = {name: risk(w) - least for name, w in estimates.items()}
    return paid, {name: ((w - best) ** 2).sum() for name, w in estimates.items()}


@settings(max_examples=8)
@seeds
def test_every_rule_pays_its_distance_from_the_bayes_rule(seed):
    paid, distances = excesses(seed, SPARSITY, SPARSITY)
    for name, distance in distances.items():
        assert abs(paid[name] - distance) < 1e-10 * (1 + distance)


def test_control_the_bayes_rule_of_another_sparsity_is_beaten():
    better = ["one-sparse", "two-sparse", "ridge"][SPARSITY - 1]
    for believed in {1, 2, 3} - {SPARSITY}:
        paid, distances = excesses(0, SPARSITY, believed)
        assert paid[better] < -1e-3
        assert max(abs(paid[name] - distances[name]) for name in RULES) > 1e-2
