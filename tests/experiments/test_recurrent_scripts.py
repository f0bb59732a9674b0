"""The experiments on recurrent layers: rules, curves, positions and visits beside loops."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from experiments.recurrent import bigram_tables, learning_curves, task_diversity
from lsa_lab.models import recurrent
from lsa_lab.tasks import markov
from lsa_lab.theory import learning_curves as theory

CURVES = learning_curves.Config(d=4, n=8, times=(3,), stream=10, test_prompts=4000)
CLOSED = theory.lms, theory.gated_delta


@pytest.fixture(scope="module")
def constants():
    return [learning_curves.find_constants(CURVES, curve) for curve in CLOSED]


def test_every_rule_has_its_closed_curve_and_no_curve_rises(constants):
    prompts, targets = learning_curves.draw_prompts(CURVES, 0)
    predict = partial(learning_curves.predict_by_rules, config=CURVES, constants=constants)
    squares = (np.asarray(jax.jit(jax.vmap(predict))(prompts)) - targets[:, None]) ** 2
    closed = learning_curves.closed_curves(CURVES, constants)
    error = squares.std(0) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(0) - closed) < 4.5 * error).all()
    assert (np.diff(closed) < 1e-12).all()
    # Control: with twice the step the curve of LMS is another one.
    other = learning_curves.closed_curves(CURVES, [constants[0] * np.array([2, 1]), constants[1]])
    lms = learning_curves.RULES.index("LMS")
    assert (np.abs(squares.mean(0) - other) > 4.5 * error)[lms].any()


def test_constants_are_the_best(constants):
    factors = np.array([(1, 1), (1.05, 1), (0.95, 1), (1, 1.05), (1, 0.95)])
    for curve, best in zip(CLOSED, constants, strict=True):

        def mean_risk(theta, curve=curve):
            return curve(CURVES.n, CURVES.d, CURVES.noise_var, theta[0], 1.0, theta[1])[1:].mean()

        least, *risks = jax.jit(jax.vmap(mean_risk))(best * factors)
        assert min(risks) > least
    step, scale = constants[1]  # the scale of a learned step is the best in training
    stated = theory.gated_delta(24, CURVES.d, CURVES.noise_var, step, 1.0, scale)
    np.testing.assert_allclose(learning_curves.curve_of_step(CURVES, step), stated, rtol=1e-4)


def test_the_mean_step_is_that_of_the_layer():
    _, shape = learning_curves.make_forward("delta", 1, CURVES)
    params = jax.jit(recurrent.init, static_argnums=1)(jax.random.key(1), shape)
    params = params.replace(w_step=0 * params.w_step, b_step=params.b_step - 1)
    prompts, _ = learning_curves.draw_prompts(dataclasses.replace(CURVES, test_prompts=4), 0)
    step = jax.jit(learning_curves.mean_step)(params, prompts)
    np.testing.assert_allclose(step, 1 / (1 + np.e), rtol=1e-12)


TABLES = task_diversity.Config(("delta", "softmax"), (4, 64), d=4, n=16, test_prompts=50, seed=7)


def test_rules_are_those_of_numpy():
    tasks = task_diversity.draw_table(TABLES, 0)[:4]
    prompts, _, answers = task_diversity.draw_tests(TABLES, 0, 4)["old"]
    mean, covariance = tasks.mean(0), np.cov(tasks.T, bias=True) + 1e-6 * np.eye(4)
    for b in range(3):
        x, y = np.asarray(prompts.x[b]), np.asarray(prompts.y[b])
        likelihood = np.exp(-((y - tasks @ x.T) ** 2).sum(1) / 0.5)
        gain = covariance @ x.T @ np.linalg.inv(x @ covariance @ x.T + 0.25 * np.eye(16))
        weights = [
            likelihood @ tasks / likelihood.sum(),
            np.linalg.solve(x.T @ x + np.eye(4), x.T @ y),
            mean + gain @ (y - x @ mean),
        ]
        np.testing.assert_allclose(answers[:, b], weights @ np.asarray(prompts.x_query[b]), 1e-6)


def test_the_position_is_0_at_the_table_and_1_at_ridge():
    _, targets, answers = task_diversity.draw_tests(TABLES, 0, 4)["new"]
    across, line = np.random.default_rng(0).standard_normal(50), answers[1] - answers[0]
    across -= (across @ line) / (line @ line) * line
    for share, error in ((0.0, 0.0), (1.0, 0.0), (0.3, 0.5)):
        mixed = answers[0] + share * line + error * across
        risk, position = task_diversity.score(mixed, targets, answers)
        np.testing.assert_allclose(position, share, atol=1e-9)
        np.testing.assert_allclose(risk, np.mean((mixed - targets) ** 2))


CHAINS = dataclasses.replace(bigram_tables.TIERS["smoke"], length=6, concentration=0.7)
K, HALF = 3, 9


def test_chains_and_visits_are_those_of_the_library():
    symbols, _ = bigram_tables.draw_chains(np.random.default_rng(0), K, CHAINS, 20_000)
    task = markov.MarkovTask(CHAINS.length * K, K, CHAINS.concentration)
    keys = jax.random.split(jax.random.key(0), 20_000)
    chains = jax.jit(jax.vmap(markov.sample, (0, None)))(keys, task)
    follows = [(s[:, 1:] == s[:, :-1]).mean(1) for s in (symbols, np.asarray(chains.symbols))]
    spread = np.sqrt(sum(share.var() / len(share) for share in follows))
    assert abs(follows[0].mean() - follows[1].mean()) < 5 * spread
    visits = bigram_tables.count_visits(symbols[:5])
    np.testing.assert_array_equal(visits, jax.vmap(markov.visits)(symbols[:5]))
    errors = np.random.default_rng(1).normal(size=visits.shape)
    means = bigram_tables.average(errors, visits, 4)
    np.testing.assert_allclose(means[:4], [errors[visits == m].mean() for m in range(4)])
    np.testing.assert_allclose(means[-1], errors.mean())


def test_the_softmax_rule_is_a_weighted_mean_of_the_symbols_that_followed():
    symbols, rows = bigram_tables.draw_chains(np.random.default_rng(0), K, CHAINS, 40)
    found = bigram_tables.predict_softmax(symbols, rows - 1 / K, HALF)
    errors = []
    for sequence, targets in zip(symbols, rows - 1 / K, strict=True):
        for t in range(HALF, len(sequence)):
            before = np.append(-1, sequence[:t])
            weights = np.where(before == sequence[t], np.exp(found["log w"]), 1.0)
            mean = weights @ (np.eye(K)[sequence[: t + 1]] - 1 / K) / weights.sum()
            errors.append(((found["scale"] * mean - targets[t]) ** 2).sum())
    np.testing.assert_allclose(found["risk"], np.mean(errors), rtol=1e-10)
