"""A value that breaks a bound is refused by its key, its value, what would do and the nearest."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from lsa_lab.harness.run.bounds import (
    INCREASING,
    POSITIVE,
    Bounded,
    Seed,
    at_least,
    at_most,
    between,
    bounds_of,
    divides,
    one_of,
)


@dataclass(frozen=True)
class Sizes(Bounded):
    n: Annotated[int, at_least(2)] = 12
    few: Annotated[int, between(1, "n")] = 3
    heads: Annotated[int, divides("n")] = 4
    rate: Annotated[float, POSITIVE] = 0.1
    share: Annotated[float, at_most(1)] = 0.5
    kind: Annotated[str, one_of("linear", "softmax")] = "linear"
    kinds: Annotated[tuple[str, ...], one_of("linear", "softmax")] = ("linear",)
    lengths: Annotated[tuple[int, ...], between(1, 64), INCREASING] = (4, 8)
    scales: Annotated[tuple[float, ...], POSITIVE] = (0.5, 2.0)
    width: Annotated[int, at_least(1)] | None = None
    seed: Seed = 0


REFUSED = [
    ({"n": 1}, "n = 1: choose a whole number and at least 2; nearest 2"),
    ({"n": 2.5}, "n = 2.5: choose a whole number; nearest 12"),
    ({"n": True}, "n = True: choose a whole number; nearest 12"),
    ({"few": 13}, "few = 13: choose a whole number and at least 1 and at most 12; nearest 12"),
    ({"heads": 5}, "heads = 5: choose a divisor of n = 12; nearest 4"),
    ({"rate": 0.0}, "rate = 0.0: choose a finite number above 0; nearest 1e-06"),
    ({"rate": math.inf}, "rate = inf: choose a finite number above 0; nearest 1e+300"),
    ({"rate": "fast"}, "rate = 'fast': choose a finite number; nearest 0.1"),
    ({"share": 1.5}, "share = 1.5: choose a finite number and at most 1; nearest 1"),
    ({"share": math.nan}, "share = nan: choose a finite number and at most 1; nearest 1"),
    ({"kind": "sofmax"}, "kind = 'sofmax': choose 'linear', 'softmax'; nearest softmax"),
    ({"kinds": ("linear", "l")}, "kinds = 'l': choose 'linear', 'softmax'; nearest linear"),
    ({"lengths": (4, 70)}, "lengths[1] = 70: choose a whole number and at least 1 and at most 64"),
    ({"lengths": (8, 4)}, "lengths = (8, 4): choose increasing numbers; nearest (4, 8)"),
    ({"lengths": (4, 4)}, "lengths = (4, 4): choose increasing numbers; nearest (4,)"),
    ({"lengths": ()}, "lengths = (): choose a tuple of at least one number"),
    ({"scales": (1.0, -1.0)}, "scales[1] = -1.0: choose a finite number above 0; nearest 1e-06"),
    ({"width": 0}, "width = 0: choose a whole number and at least 1; nearest 1"),
    ({"seed": -1}, "seed = -1: choose a whole number and at least 0"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_a_value_that_breaks_its_bound_is_refused(change, words):
    with pytest.raises(ValueError, match="choose") as refusal:
        Sizes(**change)
    assert str(refusal.value).startswith(words)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 2, "few": 2, "heads": 2},
        {"few": 12, "heads": 12, "share": 1},
        {"lengths": (1, 64), "scales": [0.1]},  # JSON gives a list back
        {"width": 1, "kinds": ("softmax", "linear")},
        {"rate": 1, "seed": 2**63 - 1},
    ],
)
def test_a_value_that_keeps_its_bounds_passes(change):
    config = Sizes(**change)
    assert {name: getattr(config, name) for name in change} == change


def test_an_end_that_names_a_field_moves_with_it():
    assert Sizes(n=24, few=20, heads=8).few == 20
    with pytest.raises(ValueError, match=r"few = 3: .*at most 2; nearest 2"):
        Sizes(n=2, heads=1)


def test_a_value_that_may_be_none_has_the_bounds_of_its_values():
    assert Sizes().width is None
    assert [bound.words for bound in bounds_of(Sizes, "width")] == [">= 1"]


def test_every_bound_has_words_for_help():
    words = {f.name: [b.words for b in bounds_of(Sizes, f.name)] for f in dataclasses.fields(Sizes)}
    assert words == {
        "n": [">= 2"],
        "few": ["1 to n"],
        "heads": ["divides n"],
        "rate": ["> 0"],
        "share": ["<= 1"],
        "kind": ["one of linear, softmax"],
        "kinds": ["one of linear, softmax"],
        "lengths": ["1 to 64", "increasing"],
        "scales": ["> 0"],
        "width": [">= 1"],
        "seed": [">= 0"],
    }


def test_what_a_config_inherits_keeps_its_bounds():
    @dataclass(frozen=True)
    class More(Sizes):
        depth: Annotated[int, at_least(1)] = 4

    with pytest.raises(ValueError, match="n = 1: "):
        More(n=1)
    with pytest.raises(ValueError, match="depth = 0: "):
        More(depth=0)
