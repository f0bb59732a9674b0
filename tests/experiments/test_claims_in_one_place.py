"""A claim stands in one place: a stranger who greps for a row's id finds its definition."""

import json
import re
from pathlib import Path

import pytest

from lsa_lab.harness.run import records
from lsa_lab.harness.run.laboratory import experiments_of

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = experiments_of("experiments")


def committed_ids(name: str) -> set[str]:
    """The ids of all rows that a committed result of any tier has judged."""
    files = (ROOT / "figures" / name).glob("**/config.json")
    verdicts = [json.loads(file.read_text("utf-8"))["verdicts"] for file in files]
    return {row.partition(".")[2] for each in verdicts for row in each}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_id_is_found_where_its_statement_stands(name):
    """As a literal, or by its beginning in a family whose axis is a field of the Config."""
    experiment = EXPERIMENTS[name]
    folder = ROOT.joinpath(*experiment.module.split("."))
    source = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    words = set(re.findall(r"[\w.+-]+", source))
    stems = tuple(re.findall(r'f"([\w.+-]+_)\{', source))
    lost = [id for id in committed_ids(name) if id not in words and not id.startswith(stems)]
    assert lost == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_family_reads_as_one_sentence_and_no_two_have_one_name(name):
    experiment = EXPERIMENTS[name]
    statements = records.statements(experiment, experiment.tiers["laptop"])
    ids = [each.id for each in statements]
    ids += [id for each in statements for id in each.cells]
    assert len(set(ids)) == len(ids)
    for each in (family for family in statements if family.cells):
        whole = each.whole
        words = whole.says + whole.measured + whole.source
        assert not re.search(r"\{[a-z_]{2,}", words), f"{each.id}: {words}"
        assert len(each.cells) <= 4 or each.message, f"{each.id}: say it in one message"
