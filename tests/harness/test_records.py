"""A damaged record or result is named, what is whole goes on, and verdicts show their criteria."""

import dataclasses
import importlib
import json
import re

import pytest

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import records
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results


@pytest.fixture
def folder(ran):
    """Of the laptop tier, with that of the paper tier in it."""
    ran()
    return ran("paper")


DAMAGED = {
    "[]": "a list",
    "{": "no JSON",
    '{"tier": 3}': "tier is 3",
    '{"tier": "laptop", "config": [], "verdicts": {}}': "config is []",
    '{"tier": "laptop", "config": {}, "verdicts": {"toy.mean": "true"}}': "verdict is 'true'",
    '{"tier": "a", "config": {}, "verdicts": {}, "memory": "1 GB"}': "memory is '1 GB'",
}


def test_a_damaged_record_is_refused_by_what_is_wrong(tmp_path):
    for text, words in DAMAGED.items():
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(RefusalError, match=re.escape(words)):
            records.last_run(tmp_path)


def test_a_damaged_record_is_named_and_what_is_whole_goes_on(folder, program, capsys):
    (folder / "config.json").write_text("{", encoding="utf-8")
    capsys.readouterr()
    for command in (("list",), ("list", "toy"), ("draw", "all"), ("report",)):
        assert program(*command) == 1
        told = capsys.readouterr()
        assert "figures/toy/config.json" in told.err or "toy is left out" in told.err
        assert "no JSON" in told.err
        assert "paper" in told.out or command[0] == "report"
    assert program("run", "toy") == 0
    assert records.last_run(folder)["verdicts"]["toy.mean"] == "holds"


def test_the_list_says_damaged_where_a_result_is_and_not_run_where_there_is_none(
    ran, program, capsys
):
    result = ran() / "result.nc"
    whole = bytearray(result.read_bytes())
    whole[len(whole) // 2] ^= 255
    result.write_bytes(whole)
    capsys.readouterr()
    assert program("list") == 1
    told = capsys.readouterr()
    assert re.search(r"^  toy +damaged ", told.out, re.M)
    assert "not run" not in told.out
    assert told.err.startswith("error: toy: ")
    assert program("list", "toy") == 1
    told = capsys.readouterr().out
    assert re.search(r"^laptop +damaged$", told, re.M)
    assert re.search(r"^paper +not run yet$", told, re.M)


@pytest.mark.parametrize("door", ["claims", "figure"])
def test_a_door_that_fails_stops_no_other_figure(folder, program, capsys, monkeypatch, door):
    module = importlib.import_module(f"toy_lab.theme.toy.{door}")
    name = {"claims": "numbers", "figure": "caption"}[door]
    whole = getattr(module, name)

    def failing(dataset):
        if results.config_of(dataset).n > 40:
            raise KeyError("lost")
        return whole(dataset)

    monkeypatch.setattr(module, name, failing)
    capsys.readouterr()
    command = "report" if door == "claims" else "draw"
    assert program(command) == 1
    told = capsys.readouterr()
    assert "toy/paper is" in told.err
    assert "KeyError" in told.err
    assert door == "figure" or "run it again" in told.err


def test_a_damaged_result_stops_no_other_figure(folder, program, capsys):
    (folder / "paper" / "result.nc").write_bytes(b"nothing")
    capsys.readouterr()
    assert program("draw", "all") == 1
    told = capsys.readouterr()
    assert "figures/toy/paper is not drawn: toy: " in told.err
    assert "figures/toy/figure.pdf" in told.out


def test_verdicts_of_other_criteria_are_not_shown_until_they_are_judged_again(
    folder, program, capsys, monkeypatch
):
    claims = importlib.import_module("toy_lab.theme.toy.claims")
    as_declared = claims.statements

    def stricter(of):
        first, *others = as_declared(of)
        return (dataclasses.replace(first, at_most=-9), *others)

    monkeypatch.setattr(claims, "statements", stricter)
    capsys.readouterr()
    assert program("list") == 0
    told = capsys.readouterr().out
    assert "  ?  " in told
    assert "1/1/1" not in told
    assert "toy: criteria have changed" in told
    program("list", "toy")
    assert "holds" not in capsys.readouterr().out
    assert program("report") == 0
    capsys.readouterr()
    program("list")
    assert "0/2/1" in capsys.readouterr().out
    verdicts = json.loads((folder / "config.json").read_text(encoding="utf-8"))["verdicts"]
    assert verdicts["toy.mean"] == "fails"


@pytest.mark.parametrize(
    "change",
    [
        {"measured": "another mean"},
        {"statistic": "median"},
        {"at_most": 8},
        {"at_most": None, "margin": 9.0},
        {"over": "seeds"},
        {"overlap": 0.5},
        {"statistic": "estimate", "standard_errors": 3.0},
        {"says": "It is"},  # control: words decide nothing
    ],
)
def test_whatever_decides_a_verdict_is_a_criterion(toy, monkeypatch, change):
    (experiment,) = experiments_of("toy_lab").values()
    claims = importlib.import_module("toy_lab.theme.toy.claims")
    as_declared, kept = claims.statements, {"statistic": change.get("statistic", "mean")}

    def digest(fields):
        first, *others = as_declared(experiment.tiers["laptop"])
        rows = (dataclasses.replace(first, **fields), *others)
        monkeypatch.setattr(claims, "statements", lambda of: rows)
        return records.criteria(experiment, {"n": 40})

    before = digest(kept if change.keys() - kept.keys() else {})
    assert (digest(change) == before) == ("says" in change)


def test_a_record_that_is_not_there_is_no_error(toy):
    assert records.last_run(toy) is None
    (toy / "config.json").mkdir()
    with pytest.raises(RefusalError, match="cannot be read"):
        records.last_run(toy)
