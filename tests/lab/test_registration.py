"""Registration: only what the commit of a run already held is registered."""

import json

import pytest

from lsa_lab.lab import registration, results, run
from lsa_lab.lab.catalogue import UsageError


def statuses(record):
    return {row["id"]: row["status"] for row in record["claims"]}


def register(package, commit=True):
    package.load()
    registration.register(package.experiment)
    if commit:
        package.commit()


def test_a_full_run_after_a_committed_registration_is_registered(package):
    others = [package.run()]
    register(package, commit=False)
    others.append(package.run())
    package.commit()
    others.append(package.run("quick"))
    assert all(set(statuses(other).values()) == {"exploratory"} for other in others)
    record = package.run()
    assert set(statuses(record).values()) == {"registered"}
    assert record["registered"]
    file = json.loads(package.experiment.registry.read_text())
    assert set(file["question"][0]["claims"]) == {"zero", "first"}


def test_a_claim_that_changes_after_the_run_is_exploratory_and_changes_are_not_published(package):
    register(package)
    package.run(publish=True)
    result = results.load(package.experiment.figures)
    for old, new, expected in (
        ("at_least=-3.0", "at_least=-2.0", "exploratory"),
        ("The mean at scale {scale} is 0", "The mean at {scale} is 0", "exploratory"),
        ('"scale": (1.0, 2.0)', '"scale": (1.0,)', "exploratory"),
        ('return result["mean"].sel(', 'return 1 + result["mean"].sel(', "exploratory"),
        ("def sample(result, scale):", "def sample(result, scale):\n    # text", "registered"),
        ("Means of", "The means of", "registered"),
    ):
        package.change(old, new)
        rows = run.judge(package.experiment, package.load(), result)
        package.change(new, old)
        assert {row["status"] for row in rows if row["claim"] == "zero"} == {expected}
        assert rows[-1]["status"] == "registered"
    package.change("Means of", "The means of")
    with pytest.raises(UsageError, match="commit your changes first"):
        package.run(publish=True)


def test_a_seed_is_registered_once_and_a_damaged_registry_is_named(package):
    package.experiment.registry.write_text("{")
    with pytest.raises(UsageError, match=r"registered.json is damaged"):
        register(package)
    package.experiment.registry.unlink()
    register(package)
    with pytest.raises(UsageError, match="is registered as it stands"):
        register(package)
    package.change("at_least=-3.0", "at_least=-2.0")
    with pytest.raises(UsageError, match=r"seed = 7 was registered on .*; choose a seed"):
        register(package)
    package.change("seed: int = 7", "seed: int = 8")
    register(package)
    seeds = {"seed": 7, "data": {"test_seed": -8, "n": 3}}
    assert registration.find_seeds(seeds) == [("seed", 7), ("test_seed", -8)]
    assert set(statuses(package.run()).values()) == {"registered"}
    package.change("seed: int = 8", "seed: int = 7")
    with pytest.raises(UsageError, match="seed = 7 was registered"):
        package.run()


def test_seeds_are_found_in_nested_parts():
    config = {"seed": 1, "models": [["a", {"data_seed": 2}]], "seeds": 9}
    assert registration.find_seeds(config) == [("seed", 1), ("data_seed", 2)]
