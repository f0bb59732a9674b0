"""A step η on one demonstration takes (2η - η² E|x|⁴)/d off the error: at most 1/(d E|x|⁴).

docs/theory, "Attention with a prior". Sides: ``prior_attention``, run on every covariate of a
distribution, every unknown weight and every query; the fourth moment. Derived here.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import seed_and
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens

densities = pytest.mark.parametrize("shape", [(1, 1.0), (3, 0.3)])  # d, share of non-zeros
seeds = seed_and(step=(0.1, 3.0))


def covariates(d, density):  # [3^d, d] and their probabilities: x_i = 0, or ±1/√(density d)
    signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d)))
    probability = np.where(signs == 0, 1 - density, density / 2).prod(1)
    return signs / np.sqrt(density * d), probability


@jax.jit
def squared_error(step_size, prior, unknown, x, x_query):
    params, w = constructions.prior_attention(step_size[None], prior), prior + unknown
    prompt = Prompt(x[None], (w @ x)[None], x_query, w @ x_query)
    predicted = prior @ x_query + predict(linear_attention.forward(params, tokens(prompt)))
    return (predicted - prompt.y_query) ** 2


def removed(seed, shape, step, aligned=False):
    """The share of the mean error that the step removes; ``step`` in units of 1/E|x|⁴."""
    (x, probability), prior = covariates(*shape), np.random.default_rng(seed).normal(size=shape[0])
    basis, step_size = jnp.eye(shape[0]), jnp.asarray(step / fourth_moment(*shape))
    over_x = jax.vmap(partial(squared_error, step_size, prior), (None, 0, None))
    over_queries = jax.vmap(over_x, (None, None, 0))
    errors = np.asarray(jax.vmap(over_queries, (0, None, None))(basis, x, basis))  # [d, d, 3^d]
    errors = np.diagonal(errors).T if aligned else errors
    before = 1.0 if aligned else 1 / shape[0]
    return 1 - (errors * probability).sum(-1).mean() / before


def fourth_moment(d, density):
    return 1 / (density * d) + (d - 1) / d


@densities
@seeds
def test_a_step_removes_what_the_fourth_moment_says(shape, seed, step):
    expected = (2 * step - step**2) / (shape[0] * fourth_moment(*shape))
    assert abs(removed(seed, shape, step) - expected) < 1e-10
    assert abs(removed(seed, shape, 2.0)) < 1e-10
    assert removed(seed, shape, 2.0 + step) < 0 < removed(seed, shape, 1.0)
    assert removed(seed, shape, step) <= removed(seed, shape, 1.0) + 1e-12


def test_control_a_query_along_the_unknown_weight_is_served_otherwise():
    shape = (3, 0.3)
    expected = 1 / (shape[0] * fourth_moment(*shape))
    assert abs(removed(0, shape, 1.0, aligned=True) - expected) > 1e-2
