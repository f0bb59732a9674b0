"""One layer trained on prompts of random lengths is trained at their harmonic mean.

One layer, masked and normalised by its own length; tokens independent given the task. docs/theory,
"Random lengths".
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import linear_attention, trace
from lsa_lab.theory import optimum

D = 2
LENGTHS = (2, 6)  # with equal probability: their harmonic mean is 3, their arithmetic mean 4
COUNTS = {n: np.array(list(itertools.product(range(3), repeat=n))) for n in (2, 3, 4, 6)}


@partial(jit_numpy, static_argnames=("keys", "normalise"))
def compute_risks(params, law, **rule):  # E (ŷ - target)² at every length of COUNTS
    def error(tokens, masses, query, target, chosen):
        rows = jnp.concatenate([tokens[chosen], jnp.append(query, 0.0)[None]])
        predicted = trace.predict(linear_attention.forward(params, rows, **rule))
        return masses[chosen].prod() * (predicted - target) ** 2

    over_prompts = jax.vmap(error, (None, None, None, None, 0))
    over_tasks = jax.vmap(over_prompts, (0, 0, 0, 0, None))
    return {n: over_tasks(*law, COUNTS[n]).sum() / 2 for n in COUNTS}


def compute_ratios(seed, num_layers=1, **rule):
    """The mean risk over lengths by those at their harmonic and at their arithmetic mean, of two
    heads and two tasks with three tokens, their probabilities, a query and a target."""
    rng = np.random.default_rng(seed)
    law = rng.normal(size=(2, 3, D + 1)), rng.dirichlet(np.ones(3), 2), rng.normal(size=(2, D))
    params, targets = draw_stack(rng, num_layers, 2, D + 1, 0.5), rng.normal(size=2)
    risks = compute_risks(params, (*law, targets), **rule)
    return [np.mean([risks[n] for n in LENGTHS]) / risks[length] for length in (3, 4)]


@seeds
def test_the_mean_risk_over_lengths_is_that_at_their_harmonic_mean(seed):
    harmonic, arithmetic = compute_ratios(seed)
    np.testing.assert_allclose(harmonic, 1, rtol=1e-10)
    assert arithmetic > 1 + 1e-8  # Control: there it is less
    if seed == 0:  # Control: two layers, a query that is a key, and a sum have no such length
        for choices in (dict(num_layers=2), dict(keys="all"), dict(normalise=False)):
            assert abs(compute_ratios(seed, **choices)[0] - 1) > 1e-4


def test_the_best_layer_of_all_lengths_is_the_optimum_at_the_harmonic_mean():
    covariance, task, noise = np.diag([1.3, 0.4]), np.eye(D), 0.5

    def mean_risk(A):
        return sum(optimum.one_layer_risk(A, covariance, task, n, noise) for n in LENGTHS) / 2

    slope = jax.jit(jax.grad(mean_risk))
    best, other = (optimum.one_layer(covariance, task, n, noise) for n in (3, 4))
    np.testing.assert_allclose(slope(best), 0, atol=1e-12)
    assert np.abs(slope(other)).max() > 1e-2
