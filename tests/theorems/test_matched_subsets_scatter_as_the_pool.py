"""Matched subsets of n scatter N/n times less than random ones, for one layer.

Pools of independent demonstrations; the statistic is a mean over demonstrations, and matched with
its labels. docs/theory, "Matched subsets scatter as the pool".
"""

import functools
import itertools

import jax
import numpy as np
import pytest

from draws import draw_stack, jit_numpy, seeds, z_score
from lsa_lab.models import constructions
from lsa_lab.selection.gradient_matching import match
from population import predict

D, FEW = 2, 6
W, NOISE = np.array([0.6, -0.4]), 1.0  # of drawn pools, whose covariates are N(0, I)
POOL, POOLS = 64, 1500
DRAWS = np.random.default_rng(0).normal(size=(POOLS, POOL, D + 1))
POOLED = np.concatenate([DRAWS[..., :D], DRAWS @ np.append(W, NOISE)[:, None]], 2)
answers = jit_numpy(jax.vmap(predict, (None, 0, 0, None)))  # of many prompts to one query


def scatter(params, prompts, query, masses):  # prompts [P, n, D+1], of probabilities [P]
    predictions = answers(params, prompts[..., :D], prompts[..., D], query)
    return masses @ (predictions - masses @ predictions) ** 2


@seeds
def test_the_ratio_of_variances_is_that_of_the_sizes(seed):
    """Over all subsets of all pools of a law of three tokens."""
    n, rng = 4, np.random.default_rng(seed)
    tokens, masses = rng.normal(size=(3, D + 1)), rng.dirichlet(np.ones(3))
    query, params = rng.normal(size=D), draw_stack(rng, 1, 2, D + 1, 0.5)
    drawn = np.array(list(itertools.product(range(3), repeat=FEW)))
    pools, weights = tokens[drawn], masses[drawn].prod(1)
    places = np.array(list(itertools.combinations(range(FEW), n)))
    subsets = pools[:, places].reshape(-1, n, D + 1)
    random = scatter(params, subsets, query, np.repeat(weights, len(places)) / len(places))
    values, vectors = np.linalg.eigh(pools.swapaxes(1, 2) @ pools / FEW)
    roots = np.sqrt(n * np.maximum(values, 0))[..., None] * vectors.swapaxes(1, 2)
    turned = np.linalg.qr(rng.normal(size=(n, D + 1)))[0] @ roots  # n rows of the pool's moment
    np.testing.assert_allclose(random / scatter(params, turned, query, weights), FEW / n, rtol=1e-6)


POINTS = np.concatenate([np.zeros((1, D)), np.eye(D)])
LABELLED = (POOLED[..., :D] @ POINTS.T - POOLED[..., D:])[..., None] * POOLED[..., None, :D]
LABELLED = LABELLED.reshape(POOLS, POOL, -1)  # gradients of the linear proxy at d + 1 checkpoints
# Second moments and nothing of labels, as wide, so that one program chooses in both.
COVARIATES = (POOLED[..., :D, None] * POOLED[..., None, :D]).reshape(POOLS, POOL, -1)
COVARIATES = np.pad(COVARIATES[..., [0, 1, 3]], ((0, 0), (0, 0), (0, 3)))


def squares(sets, depth=1):  # [P]: of the distance from what an endless pool teaches
    params, limit = constructions.gradient_descent(np.full(depth, 0.3), D), (1 - 0.7**depth) * W
    found = [answers(params, sets[..., :D], sets[..., D], u) for u in np.eye(D)]
    return sum((each - mean) ** 2 for each, mean in zip(found, limit, strict=True))


def random_squares(n, depth=1):  # [P]: the mean over disjoint parts of n
    return np.mean([squares(part, depth) for part in np.split(POOLED, POOL // n, 1)], 0)


@functools.partial(jit_numpy, static_argnums=1)
def choose(features, n):  # [P, n]
    return jax.vmap(lambda rows: match(rows, n, whiten=True, max_swaps=200))(features).indices


def matched_squares(features, n):  # [P]
    return squares(np.take_along_axis(POOLED, choose(features, n)[..., None], 1))


def excess(random, matched, n):  # of the random squares over N/n times the matched ones
    return z_score(random - POOL / n * matched)


@pytest.mark.parametrize("n", [8, 16])
def test_chosen_subsets_have_it_within_four_standard_errors(n):
    """Control: matched in covariates alone they keep the labels' noise. Then v_x/N + v_ε/n is left,
    v_x = (d + 1)|w|² and v_ε = dσ², and the ratio is below N/n."""
    random, matched = random_squares(n), matched_squares(COVARIATES, n)
    assert abs(excess(random, matched_squares(LABELLED, n), n)) < 4
    assert excess(random, matched, n) < -8
    assert abs(z_score(matched - 0.3**2 * ((D + 1) * W @ W / POOL + D * NOISE**2 / n))) < 4


def test_control_at_four_demonstrations_or_more_steps_it_is_lost():
    assert excess(random_squares(4), matched_squares(LABELLED, 4), 4) < -4  # fewer than the moments
    whole = squares(POOLED, 3)  # what a matched subset teaches
    assert excess(random_squares(8, 3), whole, 8) < -4
    assert abs(excess(random_squares(32, 3), whole, 32)) < 4  # first order in 1/n, and no control
