"""A family is one criterion for many cells: each has its id, its words and its sample."""

import dataclasses

import numpy as np
import pytest

from lsa_lab.judging.claims import judge
from lsa_lab.judging.statements import Statement, grid, having, samples_of

PARTS, SHOTS = ("attention", "MLP"), (4, 40)
RESULT = {("attention", 4): 0.0, ("attention", 40): 1.0, ("MLP", 4): 2.0, ("MLP", 40): 3.0}
SAMPLES = np.arange(9.0)


def family(**changes):
    fields = dict(
        id="flat",
        source="derived here",
        says="In {part} with {shots:d} shots the risk stays, {ease}",
        measured="the change of {part}",
        at_most=1.5,
        note="{{x}}",
        cells=grid("a4 a40 m4 m40", part=PARTS, shots=SHOTS),
        words=lambda part, shots: dict(ease="easily" if shots > 4 else "hardly"),
        sample=lambda result, part, shots: result[part, shots] + 0.01 * SAMPLES,
    )
    return Statement(**fields | changes)


def test_a_grid_names_its_places_with_the_last_axis_fastest():
    cells = grid("a4 a40 m4 m40", part=PARTS, shots=SHOTS)
    assert list(cells) == ["a4", "a40", "m4", "m40"]
    assert cells["a40"] == {"part": "attention", "shots": 40}
    assert cells["m4"] == {"part": "MLP", "shots": 4}


def test_a_smaller_tier_has_the_cells_of_its_own_places():
    cells = having(grid("a4 a40 m4 m40", part=PARTS, shots=SHOTS), shots=(40, 400))
    assert list(cells) == ["a40", "m40"]


def test_a_grid_has_an_id_for_every_place_and_none_twice():
    with pytest.raises(ValueError, match=r"3 ids, .*, and 4 places"):
        grid("a b c", part=PARTS, shots=SHOTS)
    with pytest.raises(ValueError, match="'a' is there twice"):
        grid("a b a d", part=PARTS, shots=SHOTS)


def test_words_of_a_cell_are_those_of_its_case():
    first, second, *_ = family().judged()
    assert (first.id, first.family, first.case) == ("a4", "flat", {"part": "attention", "shots": 4})
    assert first.says == "In attention with 4 shots the risk stays, hardly"
    assert second.says == "In attention with 40 shots the risk stays, easily"
    assert first.measured == "the change of attention"
    assert first.criterion == "mean over runs of the change of attention <= 1.5 ({x})"
    assert first.judged() == (first,)


def test_the_whole_family_lists_its_cases_or_has_a_message():
    whole = family().whole
    assert whole.says == "In attention / MLP with 4 / 40 shots the risk stays, hardly / easily"
    assert whole.measured == "the change of attention / MLP"
    assert (whole.note, whole.cells) == ("", {})
    message = "Everywhere the risk stays"
    assert family(message=message).whole.says == message
    assert family(message=message).judged()[0].says.startswith("In attention")


def test_every_cell_takes_its_own_sample():
    plain = Statement("b", "ours", "It is", "it", at_most=1.0, sample=lambda result: None)
    samples = samples_of([family(), plain], RESULT)
    assert list(samples) == ["a4", "a40", "m4", "m40", "b"]
    assert {id: sample[0] for id, sample in samples.items() if id != "b"} == {
        "a4": 0.0,
        "a40": 1.0,
        "m4": 2.0,
        "m40": 3.0,
    }
    assert samples["b"] is None
    with pytest.raises(ValueError, match="statement b: it has no sample; give sample="):
        dataclasses.replace(plain, sample=None).sample_of(RESULT)


def test_every_cell_is_judged_and_carries_its_family():
    samples = samples_of([family()], RESULT) | {"m40": None}
    claims = judge([family()], samples)
    assert [(claim.id, claim.verdict) for claim in claims] == [
        ("a4", "holds"),
        ("a40", "holds"),
        ("m4", "fails"),
    ]
    assert claims[2].case == {"part": "MLP", "shots": 4}
    assert claims[2].statement == "In MLP with 4 shots the risk stays, hardly"
    assert claims[2].family.says == family().whole.says


def test_an_id_is_there_once_among_cells_and_families():
    plain = Statement("m4", "ours", "It is", "it", at_most=1.0)
    samples = samples_of([family()], RESULT)
    with pytest.raises(ValueError, match="the same id, among a4, a40, m4, m40, m4"):
        judge([family(), plain], samples)
    other = family(cells=grid("x y", part=PARTS, shots=(4,)))
    with pytest.raises(ValueError, match="two families have the same id, among flat, flat"):
        judge([family(), other], samples_of([family(), other], RESULT))
