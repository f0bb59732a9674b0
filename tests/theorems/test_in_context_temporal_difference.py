"""Layers of linear attention evaluate a policy in context, by TD(0).

docs/theory, "In-context TD(0)". Sides: the network, layer by layer; a NumPy loop over transitions.
Hypotheses: tokens [φ, γφ', r]. TD(0) is no gradient: descent on squared errors differs.
"""

import jax
import jax.numpy as jnp
import numpy as np

from draws import seeds
from lsa_lab.models import constructions, linear_attention, trace

N, D, STEPS, GAMMA = 6, 3, np.array([0.3, 0.2, 0.25]), 0.9


@jax.jit
def values_by_network(rows):  # [L+1]
    params = constructions.temporal_difference(jnp.asarray(STEPS), D)
    return trace.layer_predictions(linear_attention.forward(params, rows))


def draw(seed):
    generator = np.random.default_rng(seed)
    features, following = generator.normal(size=(2, N, D))
    return features, following, generator.normal(size=N), generator.normal(size=D)


def rows(features, following, rewards, query):  # [N+1, 2D+1]
    transitions = np.concatenate([features, GAMMA * following, rewards[:, None]], 1)
    return np.concatenate([transitions, np.concatenate([query, np.zeros(D + 1)])[None]])


def values(features, following, rewards, query, directions):  # [L+1]
    """The value of the query after each step along the directions [N, D]."""
    w = np.zeros(D)
    path = [w]
    for step in STEPS:
        errors = rewards + GAMMA * following @ w - features @ w
        w = w + step / N * errors @ directions
        path.append(w)
    return np.array(path) @ query


@seeds
def test_each_layer_is_a_step_of_temporal_difference_learning(seed):
    case = draw(seed)
    np.testing.assert_allclose(values_by_network(rows(*case)), values(*case, case[0]), atol=1e-10)


@seeds
def test_control_descent_on_squared_errors_differs_from_the_second_layer_on(seed):
    case = draw(seed)
    slopes = case[0] - GAMMA * case[1]  # the gradient of the residual, with the next state's too
    descent = values(*case, slopes)
    assert np.abs(values_by_network(rows(*case)) - descent)[1:].max() > 1e-3
