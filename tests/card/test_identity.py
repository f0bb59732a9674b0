"""Known rules get their names, and other models get none."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators
from lsa_lab.card import Tier, identify, mechanism
from lsa_lab.card.batches import PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.identity import NONE, find_nearest_rules
from lsa_lab.card.model_checks import prepare_model
from lsa_lab.card.rules import run_online_rule
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask

D, NOISE = 3, 0.5
TASKS = np.random.default_rng(1).normal(size=(8, D)) / D**0.5
MEMORY = jnp.asarray(np.random.default_rng(2).normal(size=(64, D)))


def read_prompt(tokens):
    return Prompt(tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1], jnp.zeros(()))


def ridge(tokens):
    prompt = read_prompt(tokens)
    return estimators.ridge(prompt, D * NOISE**2 / len(prompt.y)) @ prompt.x_query


def descent(tokens, steps=3):
    prompt = read_prompt(tokens)
    return estimators.gradient_descent(prompt, jnp.full(steps, 0.45))[-1] @ prompt.x_query


def delta(tokens):
    prompt = read_prompt(tokens)
    steps = 0.7 / (prompt.x**2).sum(1)
    return run_online_rule(prompt, steps, jnp.ones_like(steps)) @ prompt.x_query


def smoother(tokens):
    return 2 * jax.nn.softmax(tokens[:-1, :-1] @ tokens[-1, :-1] / 2) @ tokens[:-1, -1]


def pretrained(tokens):
    means = estimators.discrete_posterior_means(read_prompt(tokens), jnp.asarray(TASKS), NOISE**2)
    return means[-1] @ tokens[-1, :-1]


def memoriser(tokens):
    """Return the label of the stored prompt with the nearest first key."""
    nearest = jnp.argmin(((tokens[:1, :-1] - MEMORY) ** 2).sum(1))
    return jnp.sin(3.0 * nearest.astype(float))


def predict_5_elsewhere(tokens):
    """Return the Bayes prediction for covariates of the usual size, and 5 for others."""
    usual = jnp.abs((tokens[:, :-1] ** 2).mean() - 1) < 0.5
    return jnp.where(usual, ridge(tokens), 5.0)


@pytest.mark.parametrize(
    ("rule", "name"),
    [(ridge, "ridge"), (descent, "gradient descent"), (delta, "delta rule"),
     (smoother, "kernel smoother"), (lambda tokens: tokens[:-1, -1].mean(), "the mean of labels"),
     (lambda tokens: 0.3 + 0 * tokens[0, 0], "a constant"),
     (memoriser, NONE), (predict_5_elsewhere, NONE)],
)  # fmt: skip
def test_a_known_rule_gets_its_name_in_20_of_20_seeds(rule, name):
    model = prepare_model(lambda params, tokens: rule(tokens), (), D, 24, causal=False)
    (nearest,) = find_nearest_rules(model, [()] * 20, PromptDistribution(D, NOISE), 24, 32)
    assert nearest.title == name
    assert nearest.agreeing == 20 or name == NONE
    assert nearest.random > 0.3


def test_identify_names_each_layer_and_lists_ties():
    def stack(params, tokens):
        """Return the predictions after one and after three steps of descent, as two layers."""
        answers = jnp.stack([jnp.zeros(()), descent(tokens, 1), descent(tokens, 3)])
        return answers, jnp.zeros((3, *tokens.shape))

    task = LinearTask(n=24, d=D, noise_std=NOISE)
    first, last = identify(stack, (), task, causal=False, num_prompts=256)
    assert (first.title, last.title) == ("gradient descent", "gradient descent")
    assert first.point.startswith("1 of step 0.4")
    assert last.point.startswith("3 of step 0.4")
    assert "GD++" in first.alike  # whose first step is the same


def test_a_model_of_few_tasks_is_bayes_over_these_tasks():
    forward = lambda params, tokens: pretrained(tokens)  # noqa: E731
    model = prepare_model(forward, (), D, 24, causal=False)
    (nearest,) = find_nearest_rules(
        model, [()] * 4, PromptDistribution(D, NOISE, tasks=TASKS), 24, 64
    )
    assert nearest.title == "Bayes over the pretraining tasks"


def test_a_name_is_undecided_where_runs_disagree_or_the_distance_is_wide():
    model = prepare_model(lambda params, tokens: ridge(tokens), (), D, 24, causal=False)
    (nearest,) = find_nearest_rules(model, [()] * 8, PromptDistribution(D, NOISE), 24, 32)
    assert nearest.title == "ridge"
    assert dataclasses.replace(nearest, agreeing=2).title == "undecided: ridge"
    wide = dataclasses.replace(nearest, interval=(0.0, 0.2), distance=0.05)
    assert wide.title == "undecided: ridge-like"


def test_least_squares_keeps_its_name_without_noise():
    def exact(params, tokens):
        prompt = read_prompt(tokens)
        return estimators.ridge(prompt, 1e-9) @ prompt.x_query

    task = LinearTask(n=24, d=D)
    (nearest,) = identify(exact, (), task, causal=False, num_prompts=128)
    assert "ridge" in (nearest.name, *nearest.alike)


def test_predictions_that_are_not_finite_have_no_rule():
    def predict(params, tokens):
        large = (tokens[:, :-1] ** 2).sum(1).max() > 16
        return jnp.where(large, jnp.nan, ridge(tokens))

    model = prepare_model(predict, (), D, 24, causal=False)
    (nearest,) = find_nearest_rules(model, [()] * 8, PromptDistribution(D, NOISE), 24, 32)
    assert nearest.title == NONE


def test_too_few_prompts_are_refused():
    with pytest.raises(ValueError, match="num_prompts = 8: it is at least 16"):
        identify(lambda params, tokens: tokens[:, 0], None, LinearTask(8, 2), num_prompts=8)


def test_without_a_farther_rule_none_is_next():
    predict = lambda params, tokens: tokens[-1, :-1].sum()  # noqa: E731  w of no prompt, far from all
    model = prepare_model(predict, (), D, 24, causal=False)
    tier = Tier(steps=100, pilot_steps=1, batch=1, prompts=512, d=D, runs=2, lengths=(8,))
    name, *_ = mechanism.find_rules(
        EvaluationContext(model, [()] * 8, tier, PromptDistribution(D, NOISE))
    )
    assert name.value == NONE
    assert name.note.endswith("of 8 sets of prompts agree; no other is farther")


@pytest.mark.parametrize(
    ("distribution", "name"),
    [
        ({"covariance": jnp.eye(D)}, "covariance"),
        ({"task_covariance": jnp.eye(D)}, "task_covariance"),
        ({"prior_mean": jnp.ones(D)}, "prior_mean"),
        ({"sparsity": 1}, "sparsity"),
        ({"labels": "signs"}, "labels 'signs'"),
        ({"signal": "sphere"}, "signal 'sphere'"),
        ({"weight_std": 0.0}, "weight_std = 0.0: it is positive"),
    ],
)
def test_a_task_with_another_distribution_is_refused(distribution, name):
    with pytest.raises(ValueError, match=name):
        identify(
            lambda params, tokens: tokens[0, 0],
            None,
            LinearTask(24, D, **distribution),
            causal=False,
        )


def test_labels_have_the_scale_of_the_task():
    """The model is ridge if a label is above 10, as with w ~ N(0, 400 I), and a constant before."""

    def layers(params, tokens):
        prompt, large = read_prompt(tokens), jnp.abs(tokens[:, -1]).max() > 10
        ridge = estimators.ridge(prompt, NOISE**2 / len(prompt.y)) @ prompt.x_query
        return jnp.stack([0, 7.0, jnp.where(large, ridge, 5.0)]), jnp.zeros((3, *tokens.shape))

    task = LinearTask(24, D, noise_std=20 * NOISE, weight_std=20.0)
    constant, ridge = identify(layers, (), task, causal=False, num_prompts=128)
    assert (constant.title, constant.point) == ("a constant", "7.000")
    assert ridge.title == "ridge"
    assert float(ridge.point.split()[1]) == pytest.approx(1.0, rel=0.05)  # of σ²/s², which is Bayes


def test_the_kalman_filter_is_best_where_weights_drift():
    distribution = PromptDistribution(D, NOISE, persistence=0.9)
    batch = draw_batch(np.random.default_rng(0), distribution, 2000, 24)
    risks = [
        (
            (
                bayes_predictions(batch, PromptDistribution(D, NOISE, persistence=keep))[:, -1]
                - batch.targets[:, -1]
            )
            ** 2
        )
        for keep in (0.9, 1.0, 0.7)
    ]
    filtered, ridge_risk, hasty = (risk.mean() for risk in risks)
    assert filtered < min(ridge_risk, hasty)
