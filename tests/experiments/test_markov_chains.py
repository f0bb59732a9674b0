"""The experiment on bigram tables: its chains, visits and rules beside loops and the library."""

import dataclasses

import jax
import numpy as np

from experiments.recurrent import bigram_tables as bigrams
from lsa_lab.tasks import markov

CONFIG = dataclasses.replace(bigrams.TIERS["smoke"], length=6, concentration=0.7)
K, HALF = 3, 9


def draw(count, seed=0):
    return bigrams.draw_chains(np.random.default_rng(seed), K, CONFIG, count)


def test_chains_have_the_law_of_the_library():
    symbols, rows = draw(20_000)
    task = markov.MarkovTask(CONFIG.length * K, K, CONFIG.concentration)
    chains = jax.jit(jax.vmap(markov.sample, (0, None)))(
        jax.random.split(jax.random.key(0), 20_000), task
    )
    follows = [(s[:, 1:] == s[:, :-1]).mean(1) for s in (symbols, np.asarray(chains.symbols))]
    spread = np.sqrt(sum(share.var() / len(share) for share in follows))
    assert abs(follows[0].mean() - follows[1].mean()) < 5 * spread
    first = np.take_along_axis(rows[:, 0], symbols[:, 1:2], 1).mean()  # E p_next = E |p|²
    np.testing.assert_allclose(first, (0.7 + 1) / (K * 0.7 + 1), rtol=0.02)


def test_visits_are_those_of_the_library():
    symbols, _ = draw(5)
    stated = [markov.visits(jax.numpy.asarray(row)) for row in symbols]
    np.testing.assert_array_equal(bigrams.count_visits(symbols), stated)


def test_the_mean_by_visits_is_that_of_a_loop():
    rng = np.random.default_rng(1)
    errors, visits = rng.normal(size=(4, 5)), rng.integers(0, 6, size=(4, 5))
    means = bigrams.average(errors, visits, 4)
    for m in range(4):
        np.testing.assert_allclose(means[m], errors[visits == m].mean())
    np.testing.assert_allclose(means[-1], errors.mean())


def test_the_softmax_rule_is_a_weighted_mean_of_the_symbols_that_followed():
    symbols, rows = draw(40)
    found = bigrams.predict_softmax(symbols, rows - 1 / K, HALF)
    errors = []
    for sequence, targets in zip(symbols, rows - 1 / K, strict=True):
        for t in range(HALF, len(sequence)):
            before = np.append(-1, sequence[:t])
            weights = np.where(before == sequence[t], np.exp(found["log w"]), 1.0)
            mean = weights @ (np.eye(K)[sequence[: t + 1]] - 1 / K) / weights.sum()
            errors.append(((found["scale"] * mean - targets[t]) ** 2).sum())
    np.testing.assert_allclose(found["risk"], np.mean(errors), rtol=1e-10)
