"""`lm_flow` puts what runs measured where it belongs, and reads how unequal flows are."""

import math

import numpy as np
import pytest

from experiments.language.lm_flow import claims, compute, measures
from experiments.language.lm_flow.config import TIERS
from lsa_lab.results import in_short

TINY = TIERS["smoke"]  # two runs, two demonstrations, two queries, two layers


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)
    flows = rng.normal(size=(2, 2, 2, 2, 2, 2))  # run, rotation, demonstration, query, layer, read
    flows[0, 1, :, 0, 1, 0] = [5, 5 + math.log(3)]  # shares 1/4 and 3/4
    flows[1, 0, :, 1, 0, 1] = [-2, -2]
    worth = rng.normal(size=(2, 4, 8))
    fakes = {
        "alone": lambda run: {"flow": flows[run.number, 0], "length": np.array([7, 9])},
        "shared": lambda run: {"flow": flows[run.number]},
        "untrained": lambda run: {"flow": -flows[run.number]},
        "single": lambda run: {
            "worth": worth[run.number],
            "same_label": run.sets.others.labels[:, None] == run.sets.fresh.labels,
            "relevance": np.stack([worth[run.number], -worth[run.number]]),
            "novelty": worth[run.number, :, 0],
            "zero_shot": worth[run.number, 0],
        },
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, fake in fakes.items():
            patch.setattr(measures, name, fake)
        return compute.compute(TINY), flows, worth


def test_the_gini_coefficient_is_that_of_the_demonstrations_shares(dataset):
    dataset, flows, _ = dataset
    gini = dataset.gini.transpose("task", "run", "rotation", "query", "layer", "read").values[0]
    np.testing.assert_allclose(gini[0, 1, 0, 1, 0], 0.25)
    np.testing.assert_allclose(gini[1, 0, 1, 0, 1], 0, atol=1e-15)
    for run, rotation, query, layer, read in np.ndindex(gini.shape):
        sizes = np.exp(flows[run, rotation, :, query, layer, read])
        apart = sum(abs(a - b) for a in sizes for b in sizes)
        ours = gini[run, rotation, query, layer, read]
        np.testing.assert_allclose(ours, apart / (2 * 4 * sizes.mean()), atol=1e-12)


def test_flows_are_as_unequal_as_the_gini_coefficients_that_are_kept(dataset):
    dataset, *_ = dataset
    one = dataset.isel(task=0)
    kept = dataset.gini[0].mean(("rotation", "query")).transpose("run", "layer", "read").values
    for place, read in enumerate(dataset.read.values):
        ours = claims.inequality(one, "shared", read)
        np.testing.assert_allclose(ours, kept[:, -1, place] / kept[:, 0, place], rtol=1e-5)


def test_every_run_keeps_its_own_flows_and_worths(dataset):
    dataset, flows, worth = dataset
    np.testing.assert_array_equal(dataset.untrained[0], in_short(-flows))
    np.testing.assert_array_equal(dataset.alone[0], in_short(flows[:, 0]))
    np.testing.assert_array_equal(dataset.worth[0], in_short(worth))
    middle = dataset.relevance.sel(rows="middle")[0]
    np.testing.assert_array_equal(middle, in_short(-worth))
    np.testing.assert_array_equal(dataset.place, [[0, 1], [1, 0]])
