"""Scores of single demonstrations and selected prompts of `lm_grads`, from known flows and odds."""

import numpy as np
import pytest
import xarray as xr

from experiments.language import decoders, readouts, sentences, singles
from experiments.language.lm_grads import compute, measures, rules
from experiments.language.lm_grads.config import RULES, TIERS
from experiments.language.lm_grads.pools import Pools

TINY = TIERS["smoke"]  # a pool of 4, two queries, two shots
RNG = np.random.default_rng(0)
FLOWS = RNG.normal(size=(4, 1, 2, 3, 2))  # a demonstration each, three layers, margin and row
BEFORE, AFTER = np.log(RNG.dirichlet([1, 1], 2)), np.log(RNG.dirichlet([1, 1], (4, 2)))
RELEVANCE, EQ_2 = RNG.normal(size=(2, 4, 2)), RNG.normal(size=(4, 2))


@pytest.fixture(scope="module")
def run():
    model, task = decoders.decoder(TINY), TINY.tasks[0][1]
    writer, kept = singles.texts(model, TINY, task)
    sets = sentences.sets(kept, task, TINY, 0, 0, others=TINY.pool)
    return measures.Run(model, writer, sets, TINY, 0)


@pytest.fixture
def readings(monkeypatch):
    monkeypatch.setattr(singles, "log_flows", lambda *_: FLOWS)
    of = singles.Singles(BEFORE, AFTER, np.zeros((4, 2)), RELEVANCE)
    monkeypatch.setattr(singles, "measure", lambda *_: of)
    monkeypatch.setattr(rules, "eq_2", lambda *_: EQ_2)


def test_each_rule_scores_by_its_own_reading(run, readings):
    ours = measures.of_pool(run)
    scores = dict(zip(RULES, ours["score"], strict=True))
    np.testing.assert_array_equal(scores["GradS"], FLOWS[:, 0, :, 2, 0])
    np.testing.assert_array_equal(scores["GradS, row"], FLOWS[:, 0, :, 2, 1])
    np.testing.assert_array_equal(scores["GradS, earlier"], FLOWS[:, 0, :, 1, 0])
    np.testing.assert_array_equal(scores["GradS, Eq. 2"], EQ_2)
    np.testing.assert_array_equal(scores["embedding"], RELEVANCE[0])
    np.testing.assert_array_equal(scores["similarity"], RELEVANCE[1])
    labels = run.sets.fresh.labels
    for i, b in np.ndindex(4, 2):
        worth = AFTER[i, b, labels[b]] - BEFORE[b, labels[b]]
        np.testing.assert_allclose(scores["oracle"][i, b], worth)
        odds = [rows[1] - rows[0] for rows in (AFTER[i, b], BEFORE[b])]
        np.testing.assert_allclose(scores["contribution"][i, b], abs(odds[0] - odds[1]))
    np.testing.assert_array_equal(ours["worth"], scores["oracle"])
    words = [len(f"Review: {text} Sentiment:".split()) for text in run.sets.others.texts]
    np.testing.assert_array_equal(ours["length"], words)


def test_prompts_hold_the_best_demonstrations_the_best_last(run, monkeypatch):
    def weigh(model, prefixes, questions, last, label_ids):
        """Log odds that tell prefixes, their order and their questions apart."""
        size = prefixes @ np.arange(1, prefixes.shape[1] + 1) + 1e6 * questions.sum(1)
        return np.stack([np.full(len(size), 3.0), 3.0 + size], axis=1)

    monkeypatch.setattr(readouts, "paired_scores", weigh)
    scores = np.array([[[0.1, 4], [0.4, 3], [0.3, 2], [0.2, 1]], [[9, 5], [8, 6], [7, 7], [6, 8]]])
    ours = measures.of_prompts(run, scores)
    expected = [[[2, 1], [1, 0]], [[1, 0], [2, 3]]]  # rule, query, the best last
    np.testing.assert_array_equal(ours["chosen"], expected)
    ids, _ = run.writer.questions(run.sets.fresh)
    for rule, query in np.ndindex(2, 2):
        prefix, _ = run.writer.demonstrations(run.sets.others.take(expected[rule][query]))
        size = sum((place + 1) * token for place, token in enumerate(prefix.tolist()))
        np.testing.assert_allclose(ours["prompt"][rule, query], size + 1e6 * ids[query].sum())
    assert ours["random_prompt"].shape == (TINY.random_draws, 2)


def test_every_run_keeps_what_was_measured_in_it(monkeypatch):
    names = ("flow", "worth", "before", "length", "pool_label", "label")
    shapes = ((4, 2, 2, 2), (4, 2), (2, 2), (4,), (4,), (2,))

    def of_pool(run):
        rows = {name: np.full(shape, run.number) for name, shape in zip(names, shapes, strict=True)}
        scores = np.arange(len(RULES))[:, None, None] + 100 * run.number
        return rows | {"score": scores + np.zeros((4, 2))}

    def of_prompts(run, scores):
        chosen = np.zeros((len(RULES), 2, 2))
        return {"prompt": scores[:, 0], "random_prompt": np.zeros((1, 2)), "chosen": chosen}

    monkeypatch.setattr(measures, "of_pool", of_pool)
    monkeypatch.setattr(measures, "of_prompts", of_prompts)
    dataset = compute.compute(TINY)
    oracle = dataset.score.sel(rule="oracle").values[0]
    np.testing.assert_array_equal(oracle, np.full((2, 4, 2), [[[8]], [[108]]]))
    np.testing.assert_array_equal(dataset.prompt.sel(rule="oracle")[0], [[8, 8], [108, 108]])
    np.testing.assert_array_equal(dataset.worth[0, 1], np.ones((4, 2)))


def test_prompts_tell_classes_apart_by_the_pairs_of_queries_that_they_put_in_order():
    rng = np.random.default_rng(1)
    odds, draws = rng.normal(size=(1, 2, 6)), rng.normal(size=(3, 2, 6))
    labels = np.array([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 1]])
    dataset = xr.Dataset(
        {
            "prompt": (("rule", "run", "query"), odds),
            "random_prompt": (("draw", "run", "query"), draws),
            "label": (("run", "query"), labels),
        },
        {"rule": ["GradS"]},
    )

    def by_hand(row, own):
        pairs = [(x, y) for x in row[own == 1] for y in row[own == 0]]
        return np.mean([x > y for x, y in pairs])

    expected = [by_hand(row, own) for row, own in zip(odds[0], labels, strict=True)]
    np.testing.assert_allclose(Pools(dataset).aucs("GradS"), expected)
    expected = np.mean([[by_hand(draws[k, r], labels[r]) for r in (0, 1)] for k in range(3)], 0)
    np.testing.assert_allclose(Pools(dataset).aucs("random"), expected)
    shifted = dataset.assign(prompt=dataset.prompt + 9)  # a constant changes no order
    np.testing.assert_allclose(Pools(shifted).aucs("GradS"), Pools(dataset).aucs("GradS"))
