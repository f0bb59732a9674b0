"""The statements of the papers are complete, and their sentences take one number each."""

import csv
import string
from pathlib import Path

import numpy as np
import pytest

from experiments.papers import PAPERS, STATEMENTS

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = {"value": "1.23", "percent": "123", "gain": "23", "loss": "-23"}


def test_keys_are_in_the_order_of_the_papers_and_keys_and_claims_are_unique():
    keys = [statement.key for statement in STATEMENTS]
    papers = [key.split(",")[0] for key in keys]
    assert papers == sorted(papers)
    assert {*papers} == {paper.key for paper in PAPERS}
    claims = [(each.experiment, each.claim) for each in STATEMENTS if each.claim]
    for names in (keys, claims):
        assert len({*names}) == len(names)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.key)
def test_a_claim_gives_one_number_and_a_theorem_has_its_test(statement):
    names = [name for _, name, *_ in string.Formatter().parse(statement.finding) if name]
    assert {*names} <= {*NUMBERS}
    assert len(names) == bool(statement.claim) == bool(statement.experiment)
    assert "{" not in statement.finding.format(**NUMBERS)
    assert statement.claim or statement.proof or statement.counterexample or statement.data
    for path in filter(None, (statement.proof, statement.counterexample)):
        assert path.startswith("tests/theorems/test_")
        assert (ROOT / path).is_file(), path


def average_logs():
    """Return changes of scores, {name: [4]}: means over the logs of each model and task."""
    changes = {}
    with (ROOT / "experiments/clipping/published_logs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rates = [name for name in row if name[0].isdigit()]
            scores = {float(rate): float(row[rate]) for rate in rates if float(row[rate]) > 0}
            clipped = np.mean([score for rate, score in scores.items() if rate >= 0.75])
            end = "first" if int(row["layer"]) <= 1 else "last"
            gain = float(row["test after"]) - float(row["test before"])
            for name, change in ((end, clipped - scores[0]), ("search", gain)):
                cluster = changes.setdefault(name, {}).setdefault((row["model"], row["task"]), [])
                cluster.append(change)
    return {name: [np.mean(x) for x in clusters.values()] for name, clusters in changes.items()}


def test_the_means_of_published_logs_are_those_of_the_findings():
    texts = " ".join(statement.finding for statement in STATEMENTS if statement.data)
    for means in average_logs().values():
        assert len(means) == 4
        low, high = min(means), max(means)
        assert f"{np.mean(means):+.3f} ({low:+.3f} to {high:+.3f})" in texts
