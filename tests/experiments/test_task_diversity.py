"""Task diversity: the rules have their risks, and models are placed between them."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.recurrent import task_diversity as experiment
from experiments.recurrent.task_diversity import Config

CONFIG = Config(("delta", "softmax"), (4, 64), d=4, n=16, test_prompts=1500, seed=7)


def test_rules_are_those_of_numpy():
    tasks = experiment.draw_table(CONFIG, 0)[:4]
    prompts, _ = experiment.draw_prompts(CONFIG, 0, tasks)
    answers = experiment.answer_by_rules(prompts, jnp.asarray(tasks), 0.25)
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


@pytest.mark.parametrize(("m", "old", "new"), [(4, 0.002, 1.33), (64, 0.025, 0.29)])
def test_rules_have_the_risks_that_theory_states(m, old, new):
    tests = [experiment.draw_tests(CONFIG, run, m) for run in range(9)]
    risks = experiment.measure_rules({(0, r): test for r, test in enumerate(tests)}, (1, 9))
    table, ridge, linear = risks["rule_risk"][1][:, 0]  # [R, task] each
    for values, stated in ((table[:, 0], old), (table[:, 1], new), (ridge[:, 0], 0.08)):
        assert abs(np.log(values.mean() / stated)) < 0.4
    # The rule that knows two moments of the tasks is no better than the table's, and on new
    # tasks both are worse than ridge.
    assert (table[:, 0] < linear[:, 0]).all()
    assert (ridge[:, 1] < table[:, 1]).all()
    assert (ridge[:, 1] < linear[:, 1]).all()


def test_the_position_is_0_at_the_table_and_1_at_ridge():
    config = Config(("delta",), (4,), test_prompts=50, seed=7)
    _, targets, answers = experiment.draw_tests(config, 0, 4)["new"]
    across = np.random.default_rng(0).standard_normal(50)
    line = answers[1] - answers[0]
    across -= (across @ line) / (line @ line) * line
    for share, error in ((0.0, 0.0), (1.0, 0.0), (0.3, 0.0), (0.3, 0.5)):
        mixed = answers[0] + share * line + error * across
        risk, position = experiment.score(mixed, targets, answers)
        np.testing.assert_allclose(position, share, atol=1e-9)
        np.testing.assert_allclose(risk, np.mean((mixed - targets) ** 2))


def test_a_turn_is_where_the_position_passes_a_half():
    tables = np.array([4, 16, 64])
    assert experiment.find_turn(np.array([0.0, 0.4, 0.6]), tables) == pytest.approx(32)
    assert experiment.find_turn(np.array([0.7, 0.4, 0.9]), tables) == 4
    assert experiment.find_turn(np.array([0.1, 0.2, 0.3]), tables) == 64


def test_a_run_that_is_worse_than_0_on_one_table_is_left_out():
    axes = ("kind", "M", "run", "task")
    risk = np.full((2, 2, 3, 2), 0.1)
    risk[1, 0, 2, 0] = 1.5  # softmax, on old tasks
    risk[0, :, :, 1] = 1.5  # on new tasks a model may be worse than 0
    result = xr.Dataset(
        {
            "risk": (axes, risk),
            "position": (axes, np.full(risk.shape, 0.2)),
            "rule_risk": (("rule", *axes[1:]), np.full((3, 2, 3, 2), 0.2)),
            "zero_risk": (axes[1:], np.ones((2, 3, 2))),
        },
        {"kind": ["delta", "softmax"], "M": [4, 64], "rule": list(experiment.RULES)}
        | {"task": list(experiment.TASKS)},
    )
    assert experiment.learned(result, "delta").tolist() == [True] * 3
    assert experiment.learned(result, "softmax").tolist() == [True, True, False]
    np.testing.assert_allclose(experiment.turn_ratio(result, "delta"), [1, 1])
    np.testing.assert_allclose(experiment.rule_ratio(result, "softmax", 64, "linear", "old"), 0.5)
    assert experiment.learned(result, "mesa") is None
    assert experiment.mlp_ratio(result, 4) is None
