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


def simulate(flips, root=EYE):  # [P], [P, d]
    """Return the share of errors after demonstrations of which some labels are flipped, and b."""
    rng = np.random.default_rng(0)
    truth, y_query = (rng.choice([-1.0, 1.0], (PROMPTS, count)) for count in (N, QUERIES))
    x, queries = (
        y[..., None] * MU + rng.normal(size=(*y.shape, D)) @ root.T for y in (truth, y_query)
    )
    y = truth * np.where(np.arange(N) < flips, -1, 1)
    units = np.broadcast_to(EYE, (PROMPTS, D, D))
    found = answers(LAYER, x, y, np.concatenate([queries, units], axis=1))
    return (np.sign(found[:, :QUERIES]) != y_query).mean(1), found[:, QUERIES:]


def formula(b, covariance=EYE):  # [P]
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
    error_rates, b = simulate(flips)
    assert abs(z_score(error_rates - formula(b))) < 4
    assert abs(z_score(formula(b) - mean_formula(flips))) < 4
    bayes = special.ndtr(-np.linalg.norm(MU))
    if flips == 0:  # no prompt is below the Bayes error
        assert (formula(b) > bayes).all()
        np.testing.assert_allclose(mean_formula(0, 10**4), bayes, rtol=1e-3)
        np.testing.assert_allclose(mean_formula(N / 2), 0.5, rtol=1e-8)  # half of the labels
    else:  # Control: another number of flips
        assert abs(z_score(formula(b) - mean_formula(0))) > 10


def test_control_other_covariances_have_another_error():
    root = np.diag([2.0, 1.0, 0.3])
    error_rates, b = simulate(0, root)
    assert abs(z_score(error_rates - formula(b, root @ root.T))) < 4
    assert abs(z_score(error_rates - formula(b))) > 10
