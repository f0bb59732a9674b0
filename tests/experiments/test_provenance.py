"""A result rests on numbers that it holds: who changes one of a Spec is refused the old result."""

import copy
from pathlib import Path

import pytest

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import runner
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = experiments_of("experiments")
WITH_MODELS = [name for name, each in EXPERIMENTS.items() if "models" in vars(each.tiers["laptop"])]


def leaves(values, path=()):
    """The places of all numbers and words in plain values."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in pairs:
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def with_change(values, path):
    """A copy of plain values in which one number or word is another."""
    values = copy.deepcopy(values)
    *above, key = path
    group = values
    for step in above:
        group = group[step]
    old = group[key]
    group[key] = f"{old}?" if isinstance(old, str) else not old if old in (None, True) else old + 1
    return values


def test_the_results_that_rest_on_named_models_are_known():
    assert len(WITH_MODELS) >= 5


@pytest.mark.parametrize("name", WITH_MODELS)
def test_a_change_of_any_number_of_a_spec_refuses_the_committed_result(name, monkeypatch):
    experiment, folder = EXPERIMENTS[name], ROOT / "figures" / name
    dataset, tiers = runner.load(experiment, "laptop", folder), experiment.tiers
    monkeypatch.setattr(results, "_decode", lambda content, path: dataset)  # checked just now
    declared = results.plain(tiers["laptop"])
    places = list(leaves(declared["models"]))
    few = slice(None, None, 1 if name == WITH_MODELS[0] else 20)  # of the others every twentieth
    assert {path[3] for path in places if len(path) > 3} >= {"noise_std", "depth", "steps", "clip"}
    for path in places[few]:
        models = with_change(declared["models"], path)
        monkeypatch.setitem(tiers, "laptop", declared | {"models": models})
        with pytest.raises(RefusalError, match=f"^{name}: .*models.*run it again") as caught:
            runner.load(experiment, "laptop", folder)
        if isinstance(path[-1], str):
            assert f".{path[-1]} = " in str(caught.value)
