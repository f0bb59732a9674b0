"""Evidence weighs nested classes, and no rule that is linear in the labels can.

w ~ N(0, I/S) on the first S coordinates, S one of two sizes; derived here. docs/theory, "Nested
classes".
"""

import jax
import numpy as np
from scipy.stats import multivariate_normal

from draws import draw_prompt, jit_numpy, seed_and, two_sizes, z_score
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


@two_sizes
@seed_and(noise_var=(0.1, 2.0), share=(0.01, 0.99))
def test_the_rule_weighs_the_conditional_means_by_evidence(n, d, seed, noise_var, share):
    prompt, classes = draw_prompt(np.random.default_rng(seed), n, d), (1, d)
    shares = np.array([share, 1 - share])
    stated = weigh(prompt, classes, noise_var, shares)
    np.testing.assert_allclose(nested(prompt, classes, noise_var, shares), stated, atol=1e-10)


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
    rng = np.random.default_rng(2)
    w = rng.normal(size=(4000, D)) * (np.arange(D) < 2) / 2**0.5
    x = rng.normal(size=(4000, N, D))
    y = np.einsum("bnd,bd->bn", x, w) + NOISE**0.5 * rng.normal(size=(4000, N))
    simple = Prompt(x, y, x[:, 0], y[:, 0])
    rules, one_class = (linear_rules(simple, classes) for classes in (CLASSES, (2, 2)))
    linear, linear_of_one = ((A @ y[..., None])[..., 0] for A in (rules, one_class))
    answers, risks = all_nested(simple, CLASSES, NOISE), linear_risk(rules, x, 2)
    bayes = ((answers - w) ** 2).sum(1)
    assert abs(z_score(((linear - w) ** 2).sum(1) - risks)) < 4
    np.testing.assert_allclose([bayes.mean(), risks.mean()], [0.007, 0.062], atol=5e-4)
    assert z_score(risks - 8 * bayes) > 4
    others = rules + 0.01 * rng.normal(size=rules.shape)
    gains = sum(linear_risk(rules, x, S) - linear_risk(others, x, S) for S in CLASSES)
    assert (gains < 0).all()
    # Control: one class is no mixture, and the linear rule is Bayes.
    of_one = all_nested(jax.tree.map(lambda leaf: leaf[:9], simple), (2, 2), NOISE)
    np.testing.assert_allclose(of_one, linear_of_one[:9], atol=1e-10)
    assert np.abs(answers - linear).max() > 1e-2
