"""Every committed result is judged again, and gives the claims that are committed with it."""

import json
from pathlib import Path

import pytest

from lsa_lab.lab import catalogue, results
from lsa_lab.lab.run import judge

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = catalogue.find("experiments")
COMPUTED = [name for name, each in EXPERIMENTS.items() if (each.figures / "claims.json").exists()]


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_committed_result_has_the_committed_claims(name):
    experiment = EXPERIMENTS[name]
    record, result = results.load_record(experiment.figures), results.load(experiment.figures)
    rows = judge(experiment, experiment.load(), result)
    assert [row["id"] for row in rows] == [row["id"] for row in record["claims"]]
    for row, committed in zip(rows, record["claims"], strict=True):
        numbers = [row.pop(key) for key in ("value", "low", "high")]
        expected = [committed.pop(key) for key in ("value", "low", "high")]
        assert numbers == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert row == committed


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_nulls_are_claims_or_reasons(name):
    claims = {claim.id: claim for claim in EXPERIMENTS[name].load().CLAIMS}
    for claim in claims.values():
        assert claim.null in claims or claim.null.startswith("none: "), claim.id


@pytest.mark.parametrize("name", COMPUTED)
def test_a_committed_result_is_of_the_full_tier(name):
    experiment = EXPERIMENTS[name]
    result = results.load(experiment.figures)
    assert result.attrs["tier"] == "full"
    assert result.attrs["dirty"] == 0
    full = results.plain_config(experiment.load().TIERS["full"])
    assert json.loads(result.attrs["config"]) == full
