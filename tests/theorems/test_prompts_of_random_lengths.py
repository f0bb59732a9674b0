"""One layer trained on prompts of random lengths is trained at their harmonic mean.

docs/theory, "Random lengths". Sides: forward passes over every prompt that a discrete law of tokens
has, at each length; the same at the harmonic mean, and the optimum in closed form. Hypotheses: one
layer, masked and normalised by its own length; tokens independent given the task.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention, trace
from lsa_lab.theory import optimum

D = 2
LENGTHS = (2, 6)  # with equal probability: their harmonic mean is 3, their arithmetic mean 4
APART, SAME = 1e-4, 1e-10  # relative: a control is apart by a million times what rounding may be
COUNTS = {n: np.array(list(itertools.product(range(3), repeat=n))) for n in (2, 3, 4, 6)}


def law(rng):
    """Two tasks, each with three tokens [x, y] and their probabilities, and a query's target."""
    masses = rng.dirichlet(np.ones(3), 2)
    return rng.normal(size=(2, 3, D + 1)), masses, rng.normal(size=(2, D)), rng.normal(size=2)


def weights(rng, num_layers=1):  # of two heads, every entry free
    return linear_attention.Params(*(0.5 * rng.normal(size=(2, num_layers, 2, D + 1, D + 1))))


def risks(keys="demonstrations", normalise=True):
    """E (ŷ - target)² at every length of COUNTS."""

    def risk(params, law, indices):
        tokens, masses, queries, targets = law

        def error(tokens, masses, query, target, chosen):
            rows = jnp.concatenate([tokens[chosen], jnp.append(query, 0.0)[None]])
            walk = linear_attention.forward(params, rows, keys=keys, normalise=normalise)
            return masses[chosen].prod() * (trace.predict(walk) - target) ** 2

        of_prompts = jax.vmap(error, (None, None, None, None, 0))
        of_tasks = jax.vmap(of_prompts, (0, 0, 0, 0, None))
        return of_tasks(tokens, masses, queries, targets, indices).sum() / 2

    return jit_numpy(lambda params, law: {n: risk(params, law, COUNTS[n]) for n in COUNTS})


RISKS = risks()


def mixed(risks):
    return np.mean([risks[n] for n in LENGTHS])


@seeds
def test_the_mean_risk_over_lengths_is_that_at_their_harmonic_mean(seed):
    rng = np.random.default_rng(seed)
    every = RISKS(weights(rng), law(rng))
    np.testing.assert_allclose(mixed(every), every[3], rtol=SAME)


def test_control_at_their_arithmetic_mean_it_is_less():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        every = RISKS(weights(rng), law(rng))
        assert mixed(every) > (1 + APART) * every[4]


@pytest.mark.parametrize(
    ("of_risks", "num_layers"),
    [(RISKS, 2), (risks(keys="all"), 1), (risks(normalise=False), 1)],
    ids=["two layers", "the query is a key", "a sum"],
)
def test_control_other_layers_have_no_such_length(of_risks, num_layers):
    rng = np.random.default_rng(0)
    every = of_risks(weights(rng, num_layers), law(rng))
    assert abs(mixed(every) / every[3] - 1) > APART


def test_the_best_layer_of_all_lengths_is_the_optimum_at_the_harmonic_mean():
    covariance, task, noise = np.diag([1.3, 0.4]), np.eye(D), 0.5

    def mean_risk(A):
        at = (optimum.one_layer_risk(A, covariance, task, n, noise) for n in LENGTHS)
        return sum(at) / len(LENGTHS)

    slope = jax.jit(jax.grad(mean_risk))
    best, other = (optimum.one_layer(covariance, task, n, noise) for n in (3, 4))
    np.testing.assert_allclose(slope(best), 0, atol=1e-12)
    assert np.abs(slope(other)).max() > 1e-2
