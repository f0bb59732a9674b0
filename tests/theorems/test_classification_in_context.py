"""One layer that reads two classes errs on a share Φ(-μ·b/|b|) of the queries.

x = yμ + z, z ~ N(0, I), labels ±1, a share of them flipped. docs/theory, "Classification in
context".
"""

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from draws import jit_numpy, z_score
from lsa_lab.models import constructions
from population import predict

N, D, PROMPTS, QUERIES = 7, 3, 4000, 20
MU, EYE = np.array([0.9, -0.4, 0.3]), np.eye(D)
LAYER = constructions.gradient_descent(np.ones(1), D)
predict_queries = jax.vmap(predict, (None, None, None, 0))
answers = jit_numpy(jax.vmap(predict_queries, (None, 0, 0, 0)))  # [P, Q]


def draw(flips, root=EYE):
    """Demonstrations of which some labels are flipped, and queries with theirs."""
    rng = np.random.default_rng(0)
    truth, y_query = (rng.choice([-1.0, 1.0], (PROMPTS, count)) for count in (N, QUERIES))
    x, queries = (
        y[..., None] * MU + rng.normal(size=(*y.shape, D)) @ root.T for y in (truth, y_query)
    )
    return x, truth * np.where(np.arange(N) < flips, -1, 1), queries, y_query


def error_rates(prompts):  # [P]
    x, y, queries, y_query = prompts
    return (np.sign(answers(LAYER, x, y, queries)) != y_query).mean(1)


def formula(prompts, covariance=EYE):  # [P]
    x, y, *_ = prompts
    b = answers(LAYER, x, y, np.broadcast_to(EYE, (PROMPTS, D, D)))
    return special.ndtr(-(b @ MU) / np.sqrt(np.einsum("pd,de,pe->p", b, covariance, b)))


def mean_formula(flips, n=N):
    """P(χ'²_d(c₊) < χ'²_d(c₋)), c± = |μ|² (1 ± √n (1 - 2p))²/2, p the share that is flipped."""
    shrunk = np.sqrt(n) * (1 - 2 * flips / n)
    density, tail = (stats.ncx2(D, MU @ MU * (1 + sign * shrunk) ** 2 / 2) for sign in (-1, 1))
    middle, width = density.mean(), 20 * density.std()
    ends = max(middle - width, 0), middle + width
    return integrate.quad(lambda s: density.pdf(s) * tail.cdf(s), *ends)[0]


@pytest.mark.parametrize("flips", [0, 1, 3])
def test_the_share_of_errors_is_that_of_the_formula(flips):
    prompts = draw(flips)
    assert abs(z_score(error_rates(prompts) - formula(prompts))) < 4
    assert abs(z_score(formula(prompts) - mean_formula(flips))) < 4


def test_no_prompt_is_below_the_bayes_error_and_half_of_the_labels_flipped_leave_chance():
    bayes = special.ndtr(-np.linalg.norm(MU))
    assert (formula(draw(0)) > bayes).all()
    np.testing.assert_allclose(mean_formula(N / 2), 0.5, rtol=1e-8)
    np.testing.assert_allclose(mean_formula(0, 10**4), bayes, rtol=1e-3)


def test_control_other_covariances_and_other_counts_of_flips_have_another_error():
    root = np.diag([2.0, 1.0, 0.3])
    prompts = draw(0, root)
    assert abs(z_score(error_rates(prompts) - formula(prompts, root @ root.T))) < 4
    assert abs(z_score(error_rates(prompts) - formula(prompts))) > 10
    assert abs(z_score(formula(draw(1)) - mean_formula(0))) > 10
