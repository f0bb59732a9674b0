"""A result rests on numbers that it holds, and tiers of one size give the same values."""

import copy
import dataclasses
from pathlib import Path

import pytest
from scipy import stats

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.report import report
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


FIGURES = Path(__file__).resolve().parents[2] / "figures"
DRAWN = {"runs", "seed", "pools", "tuned_pools", "trained"}


def sizes(config):
    """What a config says, and its parts' configs, apart from how much is drawn."""
    plain = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {
        name: sizes(value) if dataclasses.is_dataclass(value) else value
        for name, value in plain.items()
        if name not in DRAWN or isinstance(value, tuple)
    }


def alike(experiments):
    """Those of one size at the laptop and the paper tier."""
    return [
        each
        for each in experiments.values()
        if {"laptop", "paper"} <= set(each.tiers)
        and sizes(each.tiers["laptop"]) == sizes(each.tiers["paper"])
    ]


def test_one_row_in_twenty_lies_apart_between_tiers_of_one_size():
    experiments = alike(experiments_of("experiments"))
    assert len(experiments) >= 6
    whole, broken = report.collect(experiments, FIGURES)
    assert not broken, broken
    pairs = [
        result.apart(smaller) for result in report.largest(whole) for smaller in result.smaller
    ]
    apart, rows = map(sum, zip(*pairs, strict=True))
    assert rows > 80
    assert apart <= stats.binom.ppf(0.975, rows, 0.05), f"{apart} of {rows} rows lie apart"


def test_control_tiers_of_other_sizes_are_left_out():
    names = [each.name for each in alike(experiments_of("experiments"))]
    assert "bound_and_gap" not in names  # four dimensions at the laptop tier, eight at the paper's
