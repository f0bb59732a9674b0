"""A patch from m queries has their answers, and carries the share min(m/d, 1) to others in one
layer of linear attention.

The share is averaged exactly: over the subsets of m of d orthogonal queries, and over the queries
of an orthogonal basis. Control: softmax and a query that is a key have no map for all queries.
docs/theory, "A patch carries its share".
"""

import itertools

import numpy as np
import pytest

import draws
from draws import forward, jit_numpy, seeds
from lsa_lab.analyses import patches
from lsa_lab.models import transformer

N, D = 7, 4
SOFTMAX = transformer.Config(D + 1, 1, 2, 3)
run_softmax = jit_numpy(lambda params, tokens: transformer.forward(params, tokens, SOFTMAX).stream)
rank_one = jit_numpy(patches.rank_one_patch)
least_squares = jit_numpy(patches.least_squares_patch)
carried = jit_numpy(patches.carried_share)


def attend(rng, kind):
    """Return a function from a query to its token before and after a layer that reads a prompt."""
    prompt, linear = draws.draw_prompt(rng, N, D), draws.draw_stack(rng, 1, 2, D + 1)
    softmax = draws.draw_transformer(rng, 1, 2, 3, D + 1)

    def layer(query):
        tokens = draws.as_tokens(prompt.replace(x_query=query))
        if kind == "softmax":
            return run_softmax(softmax, tokens)[:, -1]
        return forward(linear, tokens, keys=kind).stream[:, -1]

    return layer


@pytest.mark.parametrize("kind", ["demonstrations", "softmax"])
@seeds
def test_the_rank_one_patch_does_for_its_query_what_the_context_does(kind, seed):
    rng = np.random.default_rng(seed)
    layer, weights = attend(rng, kind), rng.normal(size=(3, D + 1))
    bare, changed = layer(rng.normal(size=D))
    patch = rank_one(weights, bare, changed)
    np.testing.assert_allclose((weights + patch) @ bare, weights @ changed, atol=1e-10)
    singular = np.linalg.svd(patch, compute_uv=False)
    assert singular[1] < 1e-12 * (1 + singular[0])
    other, after = layer(rng.normal(size=D))  # Control: another query
    assert np.abs((weights + patch) @ other - weights @ after).max() > 1e-9


def mean_share(seed, kind, m):
    """The mean share that patches of m of d orthogonal queries carry to an orthogonal basis."""
    rng = np.random.default_rng(seed)
    layer = attend(rng, kind)
    frame, basis = (D**0.5 * draws.draw_rotation(rng, D) for _ in range(2))
    writes, tested = (
        np.array([after - bare for bare, after in map(layer, rows)]) for rows in (frame, basis)
    )
    shares = []
    for chosen in map(list, itertools.combinations(range(D), m)):
        patch = least_squares(frame[chosen], writes[chosen])
        np.testing.assert_allclose(frame[chosen] @ patch.T, writes[chosen], atol=1e-10)
        shares.append(carried(patch, basis, tested))
    return np.mean(shares)


@seeds
def test_patches_of_m_queries_carry_the_share_m_over_d(seed):
    for m in (1, 3, D):
        assert abs(mean_share(seed, "demonstrations", m) - m / D) < 1e-10
    if seed == 0:  # Control: without a map of all queries
        assert min(abs(mean_share(0, kind, D) - 1) for kind in ("softmax", "all")) > 1e-3


def test_more_queries_than_covariates_carry_all_of_it():
    rng = np.random.default_rng(1)
    matrix, inputs, tested = rng.normal(size=(2, D)), *rng.normal(size=(2, 3 * D, D))
    patch = least_squares(inputs, inputs @ matrix.T)
    np.testing.assert_allclose(carried(patch, tested, tested @ matrix.T), 1, atol=1e-12)
