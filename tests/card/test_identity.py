"""Rules that are known get their names; what is no rule gets none."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators
from lsa_lab.card import Tier, identify, mechanism
from lsa_lab.card.batches import Law, bayes_predictions, drawn_batch
from lsa_lab.card.identity import NONE, nearest_rules
from lsa_lab.card.probes import Bench
from lsa_lab.card.rules import online
from lsa_lab.card.subject import subject_of
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask

D, NOISE = 3, 0.5
TASKS = np.random.default_rng(1).normal(size=(8, D)) / D**0.5
MEMORY = jnp.asarray(np.random.default_rng(2).normal(size=(64, D)))


def prompt_of(tokens):
    return Prompt(tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1], jnp.zeros(()))


def ridge(tokens):
    prompt = prompt_of(tokens)
    return estimators.ridge(prompt, D * NOISE**2 / len(prompt.y)) @ prompt.x_query


def descent(tokens, steps=3):
    prompt = prompt_of(tokens)
    return estimators.gradient_descent(prompt, jnp.full(steps, 0.45))[-1] @ prompt.x_query


def delta(tokens):
    prompt = prompt_of(tokens)
    steps = 0.7 / (prompt.x**2).sum(1)
    return online(prompt, steps, jnp.ones_like(steps)) @ prompt.x_query


def smoother(tokens):
    return 2 * jax.nn.softmax(tokens[:-1, :-1] @ tokens[-1, :-1] / 2) @ tokens[:-1, -1]


def pretrained(tokens):
    means = estimators.discrete_posterior_means(prompt_of(tokens), jnp.asarray(TASKS), NOISE**2)
    return means[-1] @ tokens[-1, :-1]


def memoriser(tokens):
    """The label that was stored with the training prompt whose first key is nearest."""
    nearest = jnp.argmin(((tokens[:1, :-1] - MEMORY) ** 2).sum(1))
    return jnp.sin(3.0 * nearest.astype(float))


def absurd_elsewhere(tokens):
    """The Bayes rule where covariates have their usual size, and 5 elsewhere."""
    usual = jnp.abs((tokens[:, :-1] ** 2).mean() - 1) < 0.5
    return jnp.where(usual, ridge(tokens), 5.0)


@pytest.mark.parametrize(
    ("rule", "name"),
    [(ridge, "ridge"), (descent, "gradient descent"), (delta, "delta rule"),
     (smoother, "kernel smoother"), (lambda tokens: tokens[:-1, -1].mean(), "the mean of labels"),
     (lambda tokens: 0.3 + 0 * tokens[0, 0], "a constant"),
     (memoriser, NONE), (absurd_elsewhere, NONE)],
)  # fmt: skip
def test_a_known_rule_gets_its_name_in_20_of_20_seeds(rule, name):
    subject = subject_of(lambda params, tokens: rule(tokens), (), D, 24, causal=False)
    (nearest,) = nearest_rules(subject, [()] * 20, Law(D, NOISE), 24, 32)
    assert nearest.title == name
    assert nearest.agreeing == 20 or name == NONE
    assert nearest.random > 0.3


def test_identify_names_each_layer_of_a_stack_and_says_what_it_cannot_tell_apart():
    def stack(params, tokens):
        """The prediction after one and after three steps of descent, as two layers."""
        answers = jnp.stack([jnp.zeros(()), descent(tokens, 1), descent(tokens, 3)])
        return answers, jnp.zeros((3, *tokens.shape))

    task = LinearTask(n=24, d=D, noise_std=NOISE)
    first, last = identify(stack, (), task, causal=False, num_prompts=256)
    assert (first.title, last.title) == ("gradient descent", "gradient descent")
    assert first.point.startswith("1 of step 0.4")
    assert last.point.startswith("3 of step 0.4")
    assert "GD++" in first.alike  # whose first step is the same


def test_a_model_of_few_tasks_is_bayes_over_these():
    forward = lambda params, tokens: pretrained(tokens)  # noqa: E731
    subject = subject_of(forward, (), D, 24, causal=False)
    (nearest,) = nearest_rules(subject, [()] * 4, Law(D, NOISE, tasks=TASKS), 24, 64)
    assert nearest.title == "Bayes over the pretraining tasks"


def test_a_name_is_undecided_where_runs_disagree_or_the_distance_is_wide():
    subject = subject_of(lambda params, tokens: ridge(tokens), (), D, 24, causal=False)
    (nearest,) = nearest_rules(subject, [()] * 8, Law(D, NOISE), 24, 32)
    assert nearest.title == "ridge"
    assert dataclasses.replace(nearest, agreeing=2).title == "undecided: ridge"
    wide = dataclasses.replace(nearest, interval=(0.0, 0.2), distance=0.05)
    assert wide.title == "undecided: ridge-like"


def test_least_squares_keeps_its_name_without_noise():
    def exact(params, tokens):
        prompt = prompt_of(tokens)
        return estimators.ridge(prompt, 1e-9) @ prompt.x_query

    task = LinearTask(n=24, d=D)
    (nearest,) = identify(exact, (), task, causal=False, num_prompts=128)
    assert "ridge" in (nearest.name, *nearest.alike)


def test_answers_that_are_not_finite_are_of_no_rule():
    def model(params, tokens):
        large = (tokens[:, :-1] ** 2).sum(1).max() > 16
        return jnp.where(large, jnp.nan, ridge(tokens))

    subject = subject_of(model, (), D, 24, causal=False)
    (nearest,) = nearest_rules(subject, [()] * 8, Law(D, NOISE), 24, 32)
    assert nearest.title == NONE


def test_too_few_prompts_are_refused():
    with pytest.raises(ValueError, match="num_prompts = 8: it is at least 16"):
        identify(lambda params, tokens: tokens[:, 0], None, LinearTask(8, 2), num_prompts=8)


def test_where_no_rule_is_farther_than_the_nearest_none_is_next():
    own = lambda params, tokens: tokens[-1, :-1].sum()  # noqa: E731  w of no prompt, far from all
    subject = subject_of(own, (), D, 24, causal=False)
    tier = Tier(steps=100, pilot_steps=1, batch=1, prompts=512, d=D, runs=2, lengths=(8,))
    name, *_ = mechanism.rules(Bench(subject, [()] * 8, tier, Law(D, NOISE)))
    assert name.value == NONE
    assert name.note.endswith("of 8 sets of prompts agree; no other is farther")


@pytest.mark.parametrize(
    ("law", "name"),
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
def test_a_task_of_a_law_that_is_not_asked_is_refused(law, name):
    with pytest.raises(ValueError, match=name):
        identify(lambda params, tokens: tokens[0, 0], None, LinearTask(24, D, **law), causal=False)


def test_a_model_is_asked_with_labels_as_large_as_in_its_task():
    """Ridge where a label is above 10, as with w ~ N(0, 400 I) and not with w ~ N(0, I/d), and a
    constant, which keeps its unit."""

    def layers(params, tokens):
        prompt, large = prompt_of(tokens), jnp.abs(tokens[:, -1]).max() > 10
        ridge = estimators.ridge(prompt, NOISE**2 / len(prompt.y)) @ prompt.x_query
        return jnp.stack([0, 7.0, jnp.where(large, ridge, 5.0)]), jnp.zeros((3, *tokens.shape))

    task = LinearTask(24, D, noise_std=20 * NOISE, weight_std=20.0)
    constant, ridge = identify(layers, (), task, causal=False, num_prompts=128)
    assert (constant.title, constant.point) == ("a constant", "7.000")
    assert ridge.title == "ridge"
    assert float(ridge.point.split()[1]) == pytest.approx(1.0, rel=0.05)  # of σ²/s², which is Bayes


@pytest.mark.parametrize("tasks", [None, TASKS])
def test_the_rules_on_the_host_are_the_estimators(tasks):
    law = Law(D, NOISE, tasks=tasks)
    batch = drawn_batch(np.random.default_rng(0), law, 5, 12)
    prompts = jax.tree.map(jnp.asarray, batch.prompt)
    if tasks is None:
        weights = jax.vmap(lambda p: estimators.recursive_ridge(p, D * NOISE**2))(prompts)
    else:
        rule = estimators.discrete_posterior_means
        weights = jax.vmap(lambda p: rule(p, jnp.asarray(tasks), NOISE**2))(prompts)
    expected = (np.asarray(weights) * batch.x).sum(-1)
    np.testing.assert_allclose(bayes_predictions(batch, law), expected, atol=1e-10)


def test_the_kalman_filter_is_best_where_weights_drift():
    law = Law(D, NOISE, keep=0.9)
    batch = drawn_batch(np.random.default_rng(0), law, 2000, 24)
    risks = [
        ((bayes_predictions(batch, Law(D, NOISE, keep=keep))[:, -1] - batch.targets[:, -1]) ** 2)
        for keep in (0.9, 1.0, 0.7)
    ]
    filtered, ridge_risk, hasty = (risk.mean() for risk in risks)
    assert filtered < min(ridge_risk, hasty)
