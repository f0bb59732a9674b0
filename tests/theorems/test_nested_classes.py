"""Evidence weighs nested classes, and no rule that is linear in the labels can.

w ~ N(0, I/S) on the first S coordinates, S one of two sizes; derived here. docs/theory, "Nested
classes".
"""

import jax
import numpy as np
from scipy.stats import multivariate_normal

from draws import draw_prompt, jit_numpy, seed_and, sizes, z_score
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

nested = jit_numpy(estimators.nested_posterior_mean, static_argnums=1)
all_nested = jit_numpy(
    jax.vmap(estimators.nested_posterior_mean, (0, None, None)), static_argnums=1
)
N, D, CLASSES, NOISE = 32, 16, (2, 16), 0.1


def weigh(prompt, classes, noise_var, shares):  # [d]
    """Bayes' rule for each class, by the joint Gaussian of its labels and its weights."""
    n, d = prompt.x.shape
    means, evidence = [], []
    for size, share in zip(classes, shares, strict=True):
        prior = np.diag((np.arange(d) < size) / size)
        labels = prompt.x @ prior @ prompt.x.T + noise_var * np.eye(n)
        means.append(prior @ prompt.x.T @ np.linalg.solve(labels, prompt.y))
        evidence.append(share * multivariate_normal.pdf(prompt.y, np.zeros(n), labels))
    return np.array(evidence) @ np.array(means) / sum(evidence)


@sizes
@seed_and(noise_var=(0.1, 2.0), share=(0.01, 0.99))
def test_the_rule_weighs_the_conditional_means_by_evidence(n, d, seed, noise_var, share):
    prompt, classes = draw_prompt(np.random.default_rng(seed), n, d), (1, d)
    shares = np.array([share, 1 - share])
    stated = weigh(prompt, classes, noise_var, shares)
    np.testing.assert_allclose(nested(prompt, classes, noise_var, shares), stated, atol=1e-10)


def draw(size, count):  # prompts of one class, and their weights
    rng = np.random.default_rng(size)
    w = rng.normal(size=(count, D)) * (np.arange(D) < size) / size**0.5
    x = rng.normal(size=(count, N, D))
    y = np.einsum("bnd,bd->bn", x, w) + NOISE**0.5 * rng.normal(size=(count, N))
    return Prompt(x, y, x[:, 0], y[:, 0]), w


def linear_rules(batch, classes):  # [B, d, n]
    """The least error of all A(X) y: A = C Xᵀ (X C Xᵀ + σ²I)⁻¹, C = E wwᵀ over the classes."""
    variances = np.mean([(np.arange(D) < size) / size for size in classes], 0)
    moved = variances[:, None] * batch.x.mT
    return moved @ np.linalg.inv(batch.x @ moved + NOISE * np.eye(N))


def linear_risk(rules, x, size):  # [B]
    """E |A y - w|² over the labels and weights of a class, for the covariates [B, n, d]."""
    missed = (rules @ x - np.eye(D))[..., :size]
    return (missed**2).sum((1, 2)) / size + NOISE * (rules**2).sum((1, 2))


def test_no_linear_rule_has_less_risk_and_bayes_has_an_eighth_on_simple_prompts():
    simple, w = draw(2, 4000)
    rules = linear_rules(simple, CLASSES)
    risks = linear_risk(rules, simple.x, 2)
    bayes = ((all_nested(simple, CLASSES, NOISE) - w) ** 2).sum(1)
    linear = (((rules @ simple.y[..., None])[..., 0] - w) ** 2).sum(1)
    assert abs(z_score(linear - risks)) < 4
    np.testing.assert_allclose([bayes.mean(), risks.mean()], [0.007, 0.062], atol=5e-4)
    assert z_score(risks - 8 * bayes) > 4
    others = rules + 0.01 * np.random.default_rng(0).normal(size=rules.shape)
    gains = sum(
        linear_risk(A, simple.x, S) * c for S in CLASSES for A, c in ((rules, 1), (others, -1))
    )
    assert (gains < 0).all()


def test_control_one_class_is_no_mixture_and_the_linear_rule_is_bayes():
    prompts, _ = draw(2, 20)
    linear = (linear_rules(prompts, (2, 2)) @ prompts.y[..., None])[..., 0]
    np.testing.assert_allclose(all_nested(prompts, (2, 2), NOISE), linear, atol=1e-10)
    linear = (linear_rules(prompts, CLASSES) @ prompts.y[..., None])[..., 0]
    assert np.abs(all_nested(prompts, CLASSES, NOISE) - linear).max() > 1e-2
