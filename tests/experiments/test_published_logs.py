"""The copy of A2's logs agrees with itself, and with a count by hand."""

import json

import numpy as np

from experiments.clipping.published_logs import claims
from experiments.clipping.published_logs.compute import LOGS, compute
from experiments.clipping.published_logs.config import Config
from lsa_lab.store import results


def recount():
    config = Config()
    return compute(config).assign_attrs(config=json.dumps(results.plain(config)))


def test_each_log_chose_the_first_best_rate():
    rows = [line.split(",") for line in LOGS.read_text().splitlines()]
    rates = [float(rate) for rate in rows[0][4:12]]
    assert len(rows) == 1 + 32
    for row in rows[1:]:
        scores = [float(score) for score in row[4:12]]
        assert rates[int(np.argmax(scores))] == float(row[12]), row


def test_the_logs_have_as_many_gains_as_losses():
    dataset = recount()
    assert np.isnan(dataset.score).sum() == 1
    validation, test = claims.numbers(dataset).gains
    assert [int((side > 0).sum()) for side in (test, -test)] == [13, 13]
    assert float(test.max()) == float(test.sel(log="LLAMA2-7B, COPA, attention 1", end="first"))
    np.testing.assert_allclose(validation.mean("log"), [0.0196, 0.0238], atol=1e-4)
