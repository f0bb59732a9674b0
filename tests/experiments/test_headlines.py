"""No sentence that is read first can be overturned by its own cells."""

import re
import string
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from experiments import headlines, messages
from lsa_lab.harness.run import runner
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results

EXPERIMENTS = experiments_of("experiments")
FIGURES = Path(__file__).resolve().parents[2] / "figures"
HEADLINES = headlines.HEADLINES
MESSAGES = [message for each in messages.MESSAGES.values() for message in each]
# "0.59", "60 %", "3 of 6", but not "BM25"
MEASURED = re.compile(r"\d*\.\d|\d+ ?%|(?<![A-Z])\d\d|\d+ (?:of|times|cells)\b")


def sentences():
    """Whatever is generated from cells, and whatever is said beside it."""
    for each in HEADLINES:
        yield from filter(None, (each.explained, each.trained, each.language))
    for message in MESSAGES:
        yield from (message.words, message.null_words)


def test_no_number_is_typed_by_hand():
    for words in sentences():
        literal = " ".join(text for text, *_ in string.Formatter().parse(words.text))
        assert not MEASURED.search(literal), words.text
    for headline in HEADLINES:
        assert not MEASURED.search(headline.says), headline.says


def test_control_a_number_that_is_typed_is_seen():
    for text in ("0.59 of the error", "in 3 of 6 models", "less by 12 %", "8 times the risk"):
        assert MEASURED.search(text), text


def test_the_levels_can_be_read_in_twenty_minutes():
    ledger = (FIGURES / "CLAIMS.md").read_text("utf-8")
    assert len(ledger.splitlines()) <= 400
    assert len(headlines.FIRST) == 13
    assert 25 <= len(HEADLINES) <= 40
    assert len({message.says for message in MESSAGES}) == len(MESSAGES) <= 110


def at_the_cut(n):
    """What answers cost at the cut, twice the largest of n labels, over what predicting 0 does."""
    labels = np.random.default_rng(0).standard_normal((10_000, n))
    return 4 * (labels**2).max(1).mean() + 1


# Risks of edited models over that of predicting 0, from the variables that claims judge.
def clipped_layers(dataset, config):
    d = dict(config.models)["transformer"].task.d
    return (dataset.unclipped + dataset.change) / d


def verdicts(name, dataset):
    return {claim.id: claim.verdict for claim in runner.judge_result(EXPERIMENTS[name], dataset)}


def searched(dataset, config):
    return dataset.risk * (1 - dataset.test_gain) / dataset.zero


def clipped_and_dropped(dataset, config):
    d = dict(config.models)["transformer"].task.d
    zero = xr.where(dataset.condition == "shifted", d * config.shift**2, d)
    return dataset.risk * (1 + dataset.change) / zero


def pruned(dataset, config):
    task = config.models[0][1].task
    return dataset.risk / (task.sparsity * task.weight_std**2)


@pytest.mark.parametrize(
    ("name", "risks"),
    [
        ("clipping_curves", clipped_layers),
        ("clipping_search", searched),
        ("why_a_rate", clipped_and_dropped),
        ("head_pruning", pruned),
    ],
)
def test_what_is_judged_of_edited_models_is_no_explosion(name, risks):
    """A mean over runs costs no more than answers at the cut do, on every tier."""
    most = at_the_cut(40)  # no more demonstrations than these
    assert 20 < most < 30  # models that are not cut reach some hundreds
    for path in sorted(FIGURES.glob(f"{name}/**/result.nc")):
        dataset = results.load(path)
        worst = float(risks(dataset, results.config_of(dataset)).mean("run").max())
        assert worst < most, f"{path}: {worst:.3g} times the risk of predicting 0"


@pytest.mark.parametrize(
    ("name", "risks", "base"),
    [
        ("clipping_curves", clipped_layers, lambda dataset: dataset.unclipped),
        ("why_a_rate", clipped_and_dropped, lambda dataset: 1),
    ],
)
def test_no_verdict_rests_on_risks_above_ten_times_that_of_predicting_0(name, risks, base):
    """With ten times in the place of what is above, every verdict is the same."""
    for path in sorted(FIGURES.glob(f"{name}/**/result.nc")):
        dataset = results.load(path)
        over = risks(dataset, results.config_of(dataset))
        assert float(over.max()) > 10  # else there is nothing to ask
        change = (dataset.change + base(dataset)) * over.clip(max=10) / over - base(dataset)
        cut = dataset.assign(change=change.transpose(*dataset.change.dims))
        assert float(risks(cut, results.config_of(dataset)).max()) < 10 + 1e-6
        assert verdicts(name, cut) == verdicts(name, dataset)
