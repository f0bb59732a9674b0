"""Tasks of a card: Bayes rules are the best ones, and prompts are those of the recipe."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators, prompts
from lsa_lab.card import Card, Tier, batches, report_card, sample_prompts
from lsa_lab.card.batches import Batch, PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_checks import prepare_model
from lsa_lab.card.recipe import make_loss
from lsa_lab.card.tasks import TASKS, make_sampler
from lsa_lab.prompts import Prompt

TINY = Tier(steps=100, pilot_steps=1, batch=2000, prompts=16, d=4, n=24, lengths=(8,))


def measure_risk(predictions, batch):
    return ((predictions - batch.targets) ** 2).mean(0)


@pytest.mark.parametrize("task", TASKS)
def test_the_bayes_rule_is_the_best_on_prompts_of_its_task(task):
    tier = dataclasses.replace(TINY, task=task)
    batch = draw_batch(np.random.default_rng(0), tier.distribution(), 2000, tier.n)
    places = tier.places
    bayes = measure_risk(bayes_predictions(batch, tier.distribution()), batch)[places]
    assert (bayes < 0.97 * measure_risk(0.0, batch)[places]).all()
    if task != "regression":
        baseline = batches.baseline_predictions(batch, tier.distribution())
        assert (bayes[1:] < measure_risk(baseline, batch)[places][1:]).all()
    others = [dataclasses.replace(tier, task=name).distribution() for name in TASKS if name != task]
    risks = [measure_risk(bayes_predictions(batch, other), batch)[places] for other in others]
    assert (bayes[-1] <= np.stack(risks)[:, -1] + 1e-12).all()


@pytest.mark.parametrize("task", TASKS)
def test_sampled_prompts_have_the_law_of_the_probes_and_the_loss_of_the_recipe(task):
    tier = dataclasses.replace(TINY, task=task)
    tokens, labels = sample_prompts(3, tier.batch, task=task, d=tier.d, n=tier.n)
    assert tokens.shape == (2000, 25, 9)
    batch = make_sampler(tier, None, jnp.float32)(jax.random.key(3))
    forward = lambda params, tokens: params * tokens[:, 0] + tokens[:, -1]  # noqa: E731
    model = prepare_model(forward, jnp.float32(0.5), tier.d, tier.n, True)
    expected = ((0.5 * tokens[..., 0] + tokens[..., -1] - labels) ** 2).mean()
    assert make_loss(model, tier)(jnp.float32(0.5), batch) == pytest.approx(expected, rel=1e-5)
    x, y = tokens[..., :4].astype(float), labels.astype(float)
    drawn = Batch(Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1]), y)
    probed = draw_batch(np.random.default_rng(0), tier.distribution(), 2000, tier.n)
    risks = [
        ((bayes_predictions(each, tier.distribution()) - each.targets)[:, -1] ** 2).mean()
        for each in (drawn, probed)
    ]
    assert risks[0] == pytest.approx(risks[1], rel=0.2, abs=1e-12)


def test_the_bayes_rules_agree_with_the_estimators():
    table = np.random.default_rng(1).normal(size=(8, 4)) / 2
    cases = {
        "regression": lambda p: estimators.recursive_ridge(p, 4 * 0.25)[-1],
        "nested": lambda p: estimators.nested_posterior_mean(p, (1, 4), 0.25),
        "table": lambda p: estimators.discrete_posterior_means(p, jnp.asarray(table), 0.25)[-1],
    }
    for task, rule in cases.items():
        tasks = table if task == "table" else None
        distribution = PromptDistribution(4, 0.5, task.replace("table", "regression"), tasks=tasks)
        batch = draw_batch(np.random.default_rng(0), distribution, 5, 12)
        weights = jax.vmap(rule)(jax.tree.map(jnp.asarray, batch.prompt))
        expected = (np.asarray(weights) * batch.x[:, -1]).sum(-1)
        found = bayes_predictions(batch, distribution)[:, -1]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_bigram_is_predicted_as_well_as_its_visits_allow():
    """A row of concentration 1 that was visited m times has the risk 1/(1 + m)."""
    distribution = PromptDistribution(4, task="bigrams")
    batch = draw_batch(np.random.default_rng(0), distribution, 4000, 24)
    errors = (bayes_predictions(batch, distribution) - batch.targets)[:, -1] ** 2
    visits = (batch.x[:, :-1] == batch.x[:, -1:]).all(-1).sum(1)
    assert batch.targets[:, 0].mean() == pytest.approx(0, abs=0.1)
    for count in (0, 1, 2):
        of_count = errors[visits == count]
        assert of_count.mean() == pytest.approx(1 / (1 + count), abs=5 * of_count.std()
                                                / len(of_count) ** 0.5)  # fmt: skip


def test_a_model_that_recalls_has_the_card_of_the_bayes_rule_and_an_ablation_stands_beside(
    tmp_path,
):
    def recall(params, tokens):
        """Return the label of the earlier token with the same key."""
        same = tokens[:, :4] @ tokens[:, 4:8].T > 3.99
        same &= jnp.tril(jnp.ones_like(same))
        counts = jnp.maximum(same.sum(1), 1).astype(tokens.dtype)
        return params * (same.astype(tokens.dtype) @ tokens[:, 8]) / counts

    halve = {"halved": lambda params, tokens: recall(params, tokens) / 2}
    card = report_card(recall, params=jnp.ones(()), tier=TINY, task="recall", ablate=halve)
    halved = card.ablations["halved"]
    assert card.probes["accuracy of recall"].value == 1
    assert card.probes["risk over Bayes, n = 24"].verdict == "holds"
    assert card.probes["risk over Bayes, 8 times the length"].verdict == "holds"
    assert halved.probes["accuracy of recall"].value == pytest.approx(0.5, abs=0.1)  # 3 -> 1.5
    assert halved.probes["risk over Bayes, n = 24"].verdict == "fails"
    assert "nearest rule" not in card.probes
    column = card.to_dataframe().loc["accuracy of recall"]
    assert (column["value"], column["halved"]) == (1, halved.probes["accuracy of recall"].value)
    folder = card.save(tmp_path / "recalls")
    assert "8 sets of prompts" in (folder / "index.html").read_text("utf-8")
    assert Card.load(folder).ablations["halved"].probes.keys() == card.probes.keys()


def test_simple_weights_tell_evidence_from_ridge():
    def ridge(params, tokens):
        prompt = prompts.Prompt(tokens[1:, 4:8], tokens[1:, 8], tokens[-1, :4], jnp.zeros(()))
        weights = estimators.recursive_ridge(prompt, 4 * 0.25)
        return params * (weights * tokens[:, :4]).sum(1)

    card = report_card(ridge, params=jnp.asarray(1.0), tier=TINY, task="nested")
    probe = card.probes["risk over the baseline's, simple weights, n = 8"]
    assert probe.verdict == "fails"  # the baseline has a penalty for each coordinate
    assert probe.null < 0.9
