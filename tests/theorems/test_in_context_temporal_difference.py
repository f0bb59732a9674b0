"""Layers of linear attention evaluate a policy in context, by TD(0), which is no gradient.

Tokens [φ, γφ', r]. docs/theory, "In-context TD(0)".
"""

import numpy as np

from draws import forward, relative_error, seeds, sizes, temporal_difference
from lsa_lab.models import trace

STEPS, GAMMA = np.array([0.3, 0.2, 0.25]), 0.9


def values(features, following, rewards, query, directions):  # [L+1]
    """The value of the query after each step along the directions [n, d]."""
    w = np.zeros(len(query))
    path = [w]
    for step in STEPS:
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
    params = temporal_difference(STEPS, d)
    found = trace.layer_predictions(forward(params, rows))
    case = features, following, rewards, query
    assert relative_error(found, values(*case, features)) < 1e-10
    if d == 3:  # Control: descent on squared errors also uses the features of the next state
        descent = values(*case, features - GAMMA * following)
        assert np.abs(found - descent).max() > 1e-3 * np.abs(found).max()
