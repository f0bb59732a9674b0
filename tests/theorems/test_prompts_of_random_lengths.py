"""One layer trained on prompts of random lengths is trained at their harmonic mean.

One layer, masked and normalised by its own length; tokens independent given the task. docs/theory,
"Random lengths".
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import linear_attention, trace
from lsa_lab.theory import optimum

D = 2
LENGTHS = (2, 6)  # with equal probability: their harmonic mean is 3, their arithmetic mean 4
COUNTS = {n: np.array(list(itertools.product(range(3), repeat=n))) for n in (2, 3, 4, 6)}


def draw(seed, num_layers=1):
    """Two heads, and of two tasks three tokens, their probabilities, a query and a target."""
    rng = np.random.default_rng(seed)
    law = (
        rng.normal(size=(2, 3, D + 1)),
        rng.dirichlet(np.ones(3), 2),
        rng.normal(size=(2, D)),
        rng.normal(size=2),
    )
    return draw_stack(rng, num_layers, 2, D + 1, 0.5), law


def exact_risks(**rule):
    """Return the function that computes E (ŷ - target)² at every length of COUNTS."""

    def risk(params, law, indices):
        def error(tokens, masses, query, target, chosen):
            rows = jnp.concatenate([tokens[chosen], jnp.append(query, 0.0)[None]])
            predicted = trace.predict(linear_attention.forward(params, rows, **rule))
            return masses[chosen].prod() * (predicted - target) ** 2

        over_prompts = jax.vmap(error, (None, None, None, None, 0))
        return jax.vmap(over_prompts, (0, 0, 0, 0, None))(*law, indices).sum() / 2

    return jit_numpy(lambda params, law: {n: risk(params, law, COUNTS[n]) for n in COUNTS})


RISKS = exact_risks()


def ratio(risks, length):  # of the mean risk over lengths to that of one length
    return np.mean([risks[n] for n in LENGTHS]) / risks[length]


@seeds
def test_the_mean_risk_over_lengths_is_that_at_their_harmonic_mean(seed):
    risks = RISKS(*draw(seed))
    np.testing.assert_allclose(ratio(risks, 3), 1, rtol=1e-10)
    assert ratio(risks, 4) > 1 + 1e-8  # Control: at their arithmetic mean it is less


@pytest.mark.parametrize(
    ("risks", "num_layers"),
    [(RISKS, 2), (exact_risks(keys="all"), 1), (exact_risks(normalise=False), 1)],
    ids=["two layers", "the query is a key", "a sum"],
)
def test_control_other_layers_have_no_such_length(risks, num_layers):
    assert abs(ratio(risks(*draw(0, num_layers)), 3) - 1) > 1e-4


def test_the_best_layer_of_all_lengths_is_the_optimum_at_the_harmonic_mean():
    covariance, task, noise = np.diag([1.3, 0.4]), np.eye(D), 0.5

    def mean_risk(A):
        return sum(optimum.one_layer_risk(A, covariance, task, n, noise) for n in LENGTHS) / 2

    slope = jax.jit(jax.grad(mean_risk))
    best, other = (optimum.one_layer(covariance, task, n, noise) for n in (3, 4))
    np.testing.assert_allclose(slope(best), 0, atol=1e-12)
    assert np.abs(slope(other)).max() > 1e-2
