"""Gradient descent on n demonstrations: ŷ_L = v_L·y, v_{l+1} = v_l + η(k - G v_l), → G⁺k.

Sides: the construction of gradient descent, differentiated by the labels; the closed form. G =
XXᵀ/n, k = X x_query/n. Derived here; docs/theory, "The many-shot descent flow".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions

L = 6
SHAPES = [(4, 6), (9, 3)]  # n, d


def closed_form(step_sizes, x, x_query):  # [L, n]
    gram, similarity, flow = x @ x.T / len(x), x @ x_query / len(x), [np.zeros(len(x))]
    for step in step_sizes:
        flow.append(flow[-1] + step * (similarity - gram @ flow[-1]))
    return np.stack(flow[1:])


@partial(jit_numpy, static_argnames=("keys", "normalise"))
def network(step_sizes, x, y, x_query, keys, normalise):  # [L], [L, n]
    """Predictions after each layer and their derivatives by the labels."""
    params = constructions.gradient_descent(step_sizes, len(x_query))

    def predictions(y):
        rows = jnp.column_stack([jnp.concatenate([x, x_query[None]]), jnp.append(y, 0.0)])
        trace = linear_attention.forward(params, rows, keys=keys, normalise=normalise)
        return layer_predictions(trace)[1:]

    return predictions(y), jax.jacrev(predictions)(y)


def draw(seed, shape):
    """X, y, x_query and the inverse of the largest eigenvalue of XXᵀ/n."""
    rng = np.random.default_rng(seed)
    n, d = shape
    x = rng.normal(size=shape)
    return x, rng.normal(size=n), rng.normal(size=d), n / np.linalg.norm(x, 2) ** 2


def disagreement(seed, shape, keys="demonstrations", normalise=True):
    x, y, x_query, longest = draw(seed, shape)
    step_sizes = longest * np.random.default_rng(seed).uniform(0.2, 1.8, size=L)
    predictions, flow = network(step_sizes, x, y, x_query, keys, normalise)
    stated = closed_form(step_sizes, x, x_query)
    differences = [np.abs(flow - stated).max(), np.abs(predictions - stated @ y).max()]
    return max(differences) / (1 + np.abs(stated).max())


@seeds
def test_the_flow_from_the_labels_is_itself_a_descent(seed):
    assert disagreement(seed, SHAPES[0]) < 1e-10


def test_control_a_query_that_reads_itself_or_a_forgotten_n_breaks_it():
    assert disagreement(0, SHAPES[0], keys="all") > 1e-2
    assert disagreement(0, SHAPES[0], normalise=False) > 1e-2


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_its_limit_is_the_pseudo_inverse(shape, seed):
    rng = np.random.default_rng(seed)
    left, _, right = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    n, x_query = shape[0], rng.normal(size=shape[1])
    x = left * np.sqrt(n * rng.uniform(0.3, 1.0, size=min(shape))) @ right
    limit = np.linalg.pinv(x @ x.T / n, rcond=1e-9) @ x @ x_query / n
    np.testing.assert_allclose(closed_form(np.ones(100), x, x_query)[-1], limit, atol=1e-10)


def test_control_steps_beyond_the_limit_leave_it():
    x, _, x_query, longest = draw(0, SHAPES[0])
    assert np.abs(closed_form(np.full(100, 2.5 * longest), x, x_query)[-1]).max() > 1e3
