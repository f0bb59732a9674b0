"""One layer that reads two classes errs on a share Φ(-μ·b/|b|) of the queries.

docs/theory, "Classification in context". Sides: signs of a layer's forward passes on drawn prompts
and queries; the formula with the layer's own b, and its mean over prompts as the law of a ratio of
χ² variables. Hypotheses: x = yμ + z, z ~ N(0, I), labels ±1 of which a share may be flipped.
"""

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from draws import jit_numpy, z_score
from lsa_lab.models import constructions
from population import predict

N, D, PROMPTS, QUERIES = 7, 3, 4000, 20
MU = np.array([0.9, -0.4, 0.3])
MATRIX = constructions.gradient_descent(np.ones(1), D)
of_queries = jax.vmap(predict, (None, None, None, 0))
answers = jit_numpy(jax.vmap(of_queries, (None, 0, 0, 0)))  # [P, Q]
estimates = jit_numpy(
    jax.vmap(lambda x, y: of_queries(MATRIX, x, y, np.eye(D)), (0, 0))
)  # b [P, d]


def draw(flips, root=None, seed=0):
    """Demonstrations of given labels, of which some are told wrong, and queries with their own."""
    rng = np.random.default_rng(seed)
    root = np.eye(D) if root is None else root
    truth, y_query = (
        rng.choice([-1.0, 1.0], (PROMPTS, N)),
        rng.choice([-1.0, 1.0], (PROMPTS, QUERIES)),
    )
    x = truth[..., None] * MU + rng.normal(size=(PROMPTS, N, D)) @ root.T
    queries = y_query[..., None] * MU + rng.normal(size=(PROMPTS, QUERIES, D)) @ root.T
    y = truth * np.where(np.arange(N) < flips, -1, 1)
    return x, y, queries, y_query


def wrong(prompts):  # [P]: the share of queries of each prompt on which the sign is not the label
    x, y, queries, y_query = prompts
    return (np.sign(answers(MATRIX, x, y, queries)) != y_query).mean(1)


def formula(prompts, covariance=None):  # [P]
    b = estimates(*prompts[:2])
    spread = np.einsum("pd,de,pe->p", b, np.eye(D) if covariance is None else covariance, b)
    return special.ndtr(-(b @ MU) / np.sqrt(spread))


def of_ratio(flips, n=N):
    """P(χ'²_d(c₊) < χ'²_d(c₋)), c± = |μ|² (1 ± √n (1 - 2p))²/2, p the share that is flipped."""
    shrunk = np.sqrt(n) * (1 - 2 * flips / n)
    above, below = (MU @ MU * (1 + sign * shrunk) ** 2 / 2 for sign in (1, -1))
    density, tail = (stats.ncx2(D, each) for each in (below, above))
    middle, width = density.mean(), 20 * density.std()
    ends = max(middle - width, 0), middle + width
    return integrate.quad(lambda s: density.pdf(s) * tail.cdf(s), *ends)[0]


@pytest.mark.parametrize("flips", [0, 1, 3])
def test_the_share_of_errors_is_that_of_the_formula(flips):
    prompts = draw(flips)
    assert abs(z_score(wrong(prompts) - formula(prompts))) < 4
    assert abs(z_score(formula(prompts) - of_ratio(flips))) < 4


def test_no_prompt_is_below_the_bayes_error_and_half_of_the_labels_flipped_leave_chance():
    bayes = special.ndtr(-np.linalg.norm(MU))
    assert (formula(draw(0)) > bayes).all()
    np.testing.assert_allclose(of_ratio(N / 2), 0.5, rtol=1e-8)
    np.testing.assert_allclose(of_ratio(0, 10**4), bayes, rtol=1e-3)


def test_control_other_covariances_and_other_counts_of_flips_have_another_error():
    root = np.diag([2.0, 1.0, 0.3])
    prompts = draw(0, root)
    assert abs(z_score(wrong(prompts) - formula(prompts, root @ root.T))) < 4
    assert abs(z_score(wrong(prompts) - formula(prompts))) > 10
    assert abs(z_score(formula(draw(1)) - of_ratio(0))) > 10
