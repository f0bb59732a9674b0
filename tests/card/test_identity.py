"""Known rules get their names, and other models get none."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators
from lsa_lab.card import Tier, identify, mechanism
from lsa_lab.card.batches import PromptDistribution
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.identity import NONE, find_nearest_rules
from lsa_lab.card.model_checks import prepare_model
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


def online(find_step, gate=1.0):
    """Return the rule w ← gw + β(y - gw·x)x, with β a function of |x|²."""

    def predict(tokens):
        def write(weights, row):
            x, y = row[:-1], row[-1]
            step = find_step((x**2).sum())
            return gate * weights + step * (y - gate * weights @ x) * x, None

        first = jnp.zeros_like(tokens[-1, :-1])
        return jax.lax.scan(write, first, tokens[:-1])[0] @ tokens[-1, :-1]

    return predict


def gradient_descent_plus_plus(tokens):
    steps, gammas = jnp.full(3, 0.4), jnp.full(3, 0.1)
    path = estimators.gradient_descent_plus_plus(read_prompt(tokens), steps, gammas)
    return path[-1] @ tokens[-1, :-1]


def forget(tokens, gate=0.9):
    x, y = tokens[:-1, :-1], tokens[:-1, -1]
    weights = gate ** jnp.arange(len(y), dtype=float)[::-1]
    matrix = (x * weights[:, None]).T @ x + D * NOISE**2 * gate ** len(y) * jnp.eye(D)
    return jnp.linalg.solve(matrix, x.T @ (weights * y)) @ tokens[-1, :-1]


def gated_attention(tokens, gate=0.9):
    weights = gate ** jnp.arange(len(tokens) - 1, dtype=float)[::-1]
    return 0.05 * (weights * tokens[:-1, -1]) @ (tokens[:-1, :-1] @ tokens[-1, :-1])


def smoother(tokens):
    return 2 * jax.nn.softmax(tokens[:-1, :-1] @ tokens[-1, :-1] / 2) @ tokens[:-1, -1]


def pretrained(tokens):
    means = estimators.discrete_posterior_means(read_prompt(tokens), jnp.asarray(TASKS), NOISE**2)
    return means[-1] @ tokens[-1, :-1]


def memoriser(tokens):
    """Return the label of the stored prompt with the nearest first key."""
    nearest = jnp.argmin(((tokens[:1, :-1] - MEMORY) ** 2).sum(1))
    return jnp.sin(3.0 * nearest.astype(float))


NAMED = {
    "a constant": lambda tokens: 0.3 + 0 * tokens[0, 0],
    "the mean of labels": lambda tokens: tokens[:-1, -1].mean(),
    "linear attention": lambda tokens: descent(tokens, 1),
    "LMS": online(lambda square: 0.08),
    "implicit step": online(lambda square: 0.5 / (1 + 0.5 * square)),
    "delta rule": online(lambda square: 0.7 / square),
    "ridge": ridge,
    "kernel smoother": smoother,
    "gradient descent": descent,
    "gated linear attention": gated_attention,
    "gated delta rule": online(lambda square: 0.7 / square, 0.9),
    "GD++": gradient_descent_plus_plus,
    "forgetting RLS": forget,
}


def as_layers(*rules):
    """Return a model with one rule after each layer."""

    def forward(params, tokens):
        answers = jnp.stack([jnp.zeros(()), *(rule(tokens) for rule in rules)])
        return answers, jnp.zeros((len(answers), *tokens.shape))

    return forward


def find_rules(forward, runs, size=8, tasks=None):
    """Return the nearest rule after each layer of a model of the query alone."""
    model = prepare_model(forward, (), D, 24, causal=False)
    return find_nearest_rules(
        model, [()] * runs, PromptDistribution(D, NOISE, tasks=tasks), 24, size
    )


@pytest.mark.slow
def test_known_rules_get_their_names_in_20_of_20_seeds():
    found = find_rules(as_layers(*NAMED.values()), 20)
    assert [nearest.title for nearest in found] == list(NAMED)
    assert [nearest.agreeing for nearest in found] == [20] * len(NAMED)
    by_name = dict(zip(NAMED, found, strict=True))
    assert by_name["gradient descent"].point.startswith("3 steps of 0.4")
    assert set(by_name["ridge"].tied) == {"forgetting RLS", "Newton's iteration"}
    assert "GD++" in by_name["linear attention"].tied  # whose first step is the same
    assert by_name["forgetting RLS"].tied == ()
    doubtful = dataclasses.replace(by_name["ridge"], agreeing=10)  # runs disagree
    assert doubtful.title == "undecided: ridge"
    wide = dataclasses.replace(by_name["ridge"], interval=(0.0, 0.2), distance=0.05)
    assert wide.title == "undecided: ridge-like"


def test_absurd_models_have_no_rule():
    def broken(tokens):
        large = (tokens[:, :-1] ** 2).sum(1).max() > 16
        return jnp.where(large, jnp.nan, ridge(tokens))

    found = find_rules(as_layers(memoriser, broken), 8)
    assert [nearest.title for nearest in found] == [NONE] * 2


class Layer:
    """A layer that averages labels and is meant to be a delta rule."""

    rule = "delta rule"

    def forward(self, params, tokens):
        return tokens[:-1, -1].mean()


def test_the_page_gets_all_distances_and_the_rule_of_the_design():
    model = prepare_model(Layer().forward, (), D, 24, causal=False)
    tier = Tier(steps=100, pilot_steps=1, batch=1, prompts=64, d=D, runs=2, lengths=(8,))
    context = EvaluationContext(model, [()] * 2, tier, PromptDistribution(D, NOISE))
    name, *_ = mechanism.find_rules(context)
    (rule,) = json.loads(json.dumps(context.curves["rules"]))
    assert name.value == rule["title"] == "the mean of labels"
    assert {"ridge", "delta rule", *NAMED} <= set(rule["distances"])
    assert rule["own"] == {"name": "delta rule", "distance": rule["distances"]["delta rule"]}
    assert rule["own"]["distance"] > 0.5
    assert "delta rule" in name.note


def test_a_model_of_few_tasks_is_bayes_over_these_tasks():
    (nearest,) = find_rules(lambda params, tokens: pretrained(tokens), 4, 32, TASKS)
    assert nearest.title == "Bayes over the pretraining tasks"


def test_least_squares_keeps_its_name_without_noise():
    exact = lambda params, tokens: estimators.ridge(read_prompt(tokens), 1e-9) @ tokens[-1, :-1]  # noqa: E731
    (nearest,) = identify(exact, (), LinearTask(n=24, d=D), causal=False, num_prompts=128)
    assert "ridge" in (nearest.name, *nearest.tied)


def test_too_few_prompts_are_refused():
    with pytest.raises(ValueError, match="num_prompts = 8: it is at least 16"):
        identify(lambda params, tokens: tokens[:, 0], None, LinearTask(8, 2), num_prompts=8)


@pytest.mark.parametrize(
    ("distribution", "name"),
    [({"covariance": jnp.eye(D)}, "covariance"), ({"prior_mean": jnp.ones(D)}, "prior_mean"),
     ({"task_covariance": jnp.eye(D)}, "task_covariance"), ({"sparsity": 1}, "sparsity"),
     ({"labels": "signs"}, "labels"), ({"signal": "sphere"}, "signal"), ({"drift": 0.9}, "drift"),
     ({"weight_std": 0.0}, "weight_std = 0.0: it is positive")],
)  # fmt: skip
def test_a_task_with_another_distribution_is_refused(distribution, name):
    with pytest.raises(ValueError, match=name):
        identify(ridge, None, LinearTask(24, D, **distribution), causal=False)


def test_labels_have_the_scale_of_the_task():
    """The model is ridge if a label is above 10, as with w ~ N(0, 400 I), and a constant before."""

    def layers(params, tokens):
        prompt, large = read_prompt(tokens), jnp.abs(tokens[:, -1]).max() > 10
        ridge = estimators.ridge(prompt, NOISE**2 / len(prompt.y)) @ prompt.x_query
        return jnp.stack([0, 7.0, jnp.where(large, ridge, 5.0)]), jnp.zeros((3, *tokens.shape))

    task = LinearTask(24, D, noise_std=20 * NOISE, weight_std=20.0)
    constant, ridge = identify(layers, (), task, causal=False, num_prompts=128)
    assert (constant.title, constant.point) == ("a constant", f"{7 / 20 / D**0.5:.3f}")
    assert ridge.title == "ridge"
    assert float(ridge.point.split()[1]) == pytest.approx(1.0, rel=0.05)  # of σ²/s², which is Bayes
