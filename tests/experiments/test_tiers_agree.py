"""Tiers that differ in how much is drawn alone give the same values, as their intervals say."""

import dataclasses
from pathlib import Path

from scipy import stats

from lsa_lab.harness.report import report
from lsa_lab.harness.run.laboratory import experiments_of

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
