"""Tokens of a task spread in every direction, and near flows have near ratios.

docs/theory, "Near in risk, near in flow", (3) and (4). Sides: eigenvalues of the tokens'
covariance, logarithms of ratios of lengths; the two bounds.
"""

import numpy as np

from draws import seeds


def least(w, noise_var, covariance):
    """λ_min of the covariance of (x, w·x + ε)."""
    along = covariance @ w
    moment = np.block([[covariance, along[:, None]], [along[None], w @ along + noise_var]])
    return np.linalg.eigvalsh(moment)[0]


def draw(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=rng.integers(1, 6)) * 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-2, 1)


@seeds
def test_the_least_variance_of_a_token_is_bounded(seed):
    w, noise_var = draw(seed)
    bound = noise_var / (1 + w @ w + noise_var)
    assert bound * (1 - 1e-9) <= least(w, noise_var, np.eye(len(w)))


def test_the_bound_is_reached_where_the_task_is_large():
    np.testing.assert_allclose(least(np.full(1, 1e3), 1.0, np.eye(1)), 1 / (2 + 1e6), rtol=1e-5)


def test_control_of_smaller_covariates_it_is_none():
    assert least(np.ones(1), 1.0, np.eye(1) / 10) < 1 / 3


def apart(best, away):
    flows, ideal = (np.linalg.norm(rows, axis=1) for rows in (best + away, best))
    return abs(np.log(flows[0] / flows[1]) - np.log(ideal[0] / ideal[1]))


@seeds
def test_near_flows_have_near_ratios(seed):
    rng = np.random.default_rng(seed)
    best, away = rng.normal(size=(2, 2, 4))
    share = rng.uniform(0, 0.99)
    away *= share * (np.linalg.norm(best, axis=1) / np.linalg.norm(away, axis=1))[:, None]
    limit = np.log((1 + share) / (1 - share))
    assert apart(best, away) <= limit * (1 + 1e-9)
    signs = np.array([[share], [-share]])  # one along its flow, one against: the end of the bound
    np.testing.assert_allclose(apart(best, signs * best), limit, atol=1e-9)


def test_control_one_flow_that_is_far_has_another_ratio():
    best = np.eye(2)
    assert apart(best, np.array([[0.1], [-0.9]]) * best) > np.log(1.1 / 0.9)
