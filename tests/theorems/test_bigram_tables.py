"""A mesa layer and a delta rule with the step 1/(visits + Kc) are the Dirichlet-Bayes bigram table;
a constant step makes an exponential mean; linear attention counts and does not divide.

The rows of a transition table are Dirichlet(c, ..., c); derived here. docs/theory, "Bigram tables".
"""

import itertools

import jax
import numpy as np
import pytest

from draws import jit_numpy, seed_and, z_score
from lsa_lab.models import recurrent
from lsa_lab.tasks import markov
from lsa_lab.theory import bigrams

K, C, N, STEP, SCALE = 4, 0.6, 30, 0.15, 1.1
TASK = markov.MarkovTask(N, K, C)
sample, count_visits = jit_numpy(markov.sample), jit_numpy(markov.visits)
predict = jit_numpy(markov.dirichlet_prediction, static_argnums=1)
tokens = jit_numpy(markov.tokens, static_argnums=(1, 2))


def follow(symbols, step):  # -> [T], [T, K]
    """Return the visits and the row of each symbol in a table whose rows move to what follows."""
    table, counts, visits, reads = np.full((K, K), 1 / K), np.zeros(K, int), [], []
    for t, symbol in enumerate(symbols):
        if t:
            row = symbols[t - 1]
            table[row] += step(counts[row]) * (np.eye(K)[symbol] - table[row])
            counts[row] += 1
        visits.append(counts[symbol])
        reads.append(table[symbol].copy())
    return np.array(visits), np.array(reads)


@seed_and(concentration=(0.1, 3.0))
def test_steps_that_fall_with_the_visits_are_the_bayes_rule(seed, concentration):
    symbols = sample(jax.random.key(seed), TASK).symbols
    visits, reads = follow(symbols, lambda m: 1 / (m + 1 + K * concentration))
    np.testing.assert_allclose(predict(symbols, K, concentration), reads, rtol=1e-10)
    np.testing.assert_array_equal(count_visits(symbols), visits)


def run_layer(kind, symbols):  # [T, K]
    """Return 1/K plus the reads of a layer with one-hot keys and centred values."""
    current, before = np.eye(K, 2 * K)[None, None], np.eye(K, 2 * K, K)[None, None]
    numbers, nothing = np.ones((1, 1, 1)), np.zeros((1, 1, 1, 2 * K))
    choices = {
        "delta": dict(w_step=nothing, b_step=np.log(STEP / (1 - STEP)) * numbers),
        "mesa": dict(
            **dict(
                w_step=nothing, b_step=np.inf * numbers, w_gate=nothing, b_gate=np.inf * numbers
            ),
            log_penalty=np.log(K * C) * numbers[0],
        ),
    }
    params = recurrent.Params(
        **dict(w_q=current, w_k=before, w_v=current - current.mean(2, keepdims=True)),
        w_o=np.eye(2 * K, K)[None, None],
        **choices.get(kind, {}),
    )
    config = recurrent.Config(kind, 2 * K, key_width=K, layout="bound", normalise=False)
    run = jit_numpy(lambda rows: recurrent.forward(params, rows, config).heads[0, 0, :, :K])
    return 1 / K + run(tokens(symbols, K, float))


def test_layers_are_these_tables():
    symbols = sample(jax.random.key(1), TASK).symbols
    np.testing.assert_allclose(run_layer("mesa", symbols), predict(symbols, K, C), atol=1e-12)
    visits, means = follow(symbols, lambda m: 1 / (m + 1))
    counted, exponential = 1 / K + visits[:, None] * (means - 1 / K), run_layer("delta", symbols)
    np.testing.assert_allclose(exponential, follow(symbols, lambda m: STEP)[1], atol=1e-12)
    np.testing.assert_allclose(run_layer("additive", symbols), counted, atol=1e-12)
    assert np.abs(exponential - means).max() > 0.1  # Control


@pytest.mark.parametrize("visits", [1, 7, 40])
def test_a_row_that_was_drawn_has_the_stated_risks(visits):
    rng = np.random.default_rng(visits)
    p = rng.dirichlet([C] * K, 20_000)
    draws = (rng.random((20_000, visits, 1)) > p.cumsum(1)[:, None]).sum(2)
    ends, weight = np.eye(K)[draws] - 1 / K, 1 / (visits + K * C)
    decays = SCALE * STEP * (1 - STEP) ** np.arange(visits)[::-1]
    for weights, stated, other in (
        (decays, bigrams.delta_rule(visits, K, C, STEP, SCALE), (STEP + 0.05, SCALE)),
        (np.full(visits, weight), bigrams.counting(visits, K, C, weight), (STEP, SCALE)),
    ):
        errors = ((1 / K + np.einsum("m,bmk->bk", weights, ends) - p) ** 2).sum(1)
        assert abs(z_score(errors - stated)) < 4
        assert abs(z_score(errors - bigrams.delta_rule(visits, K, C, *other))) > 6  # Control


def test_of_all_weights_bayes_has_the_least_risk():
    visits = np.arange(50)
    v, weight = (1 - 1 / K) / (K * C + 1), 1 / (visits + K * C)
    best = bigrams.counting(visits, K, C, weight)
    np.testing.assert_allclose(best, v * K * C / (K * C + visits), rtol=1e-12)
    for other in (weight + 0.01, weight - 0.01):
        assert (bigrams.counting(visits, K, C, other) >= best).all()
    for k in range(1, 80):
        assert (bigrams.delta_rule(visits, K, C, 0.01 * k, SCALE) >= best - 1e-15).all()


def test_on_chains_the_visits_depend_on_the_rows_but_little():
    count, draw = 10_000, jit_numpy(jax.vmap(markov.sample, (0, None)))
    chains, each = draw(jax.random.split(jax.random.key(2), count), TASK), np.arange(count)
    counts = np.zeros((count, K, K))
    for before, after in itertools.pairwise(chains.symbols.T):
        counts[each, before, after] += 1
    last = chains.symbols[:, -1]
    followers, rows = counts[each, last], chains.table[each, last]
    visits = followers.sum(1)
    guesses = (C + followers) / (visits + K * C)[:, None]
    stated = bigrams.counting(visits, K, C, 1 / (visits + K * C)).mean()
    np.testing.assert_allclose(((guesses - rows) ** 2).sum(1).mean(), stated, rtol=0.03)
