"""`lm_flow` puts what runs measured where it belongs, and reads how unequal flows are."""

import math

import numpy as np
import pytest

from experiments.language.lm_flow import compute, flow_sizes, measures
from experiments.language.lm_flow.config import TIERS
from lsa_lab.analyses import disparity
from lsa_lab.store.results import in_short

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


def test_flows_are_as_unequal_as_the_gini_coefficients_of_the_library(dataset):
    dataset, flows, _ = dataset
    one = dataset.isel(task=0)
    for mode, sign in (("shared", 1), ("untrained", -1)):
        logs = np.moveaxis(sign * flows, 2, -1)  # [run, rotation, query, layer, read, n]
        gini = np.asarray(disparity.gini(logs)).mean((1, 2))
        np.testing.assert_allclose(gini[0, 1, 0], gini_by_hand(sign * flows[0, ..., 1, 0]))
        for place, read in enumerate(dataset.read.values):
            expected = gini[:, -1, place] / gini[:, 0, place]
            np.testing.assert_allclose(flow_sizes.inequality(one, mode, read), expected, rtol=1e-5)


def gini_by_hand(logs):  # [rotation, demonstration, query]
    sizes = np.moveaxis(np.exp(logs), 1, -1)
    apart = abs(sizes[..., None] - sizes[..., None, :]).sum((-1, -2))
    return (apart / (2 * sizes.shape[-1] * sizes.sum(-1))).mean()


def test_every_run_keeps_its_own_flows_and_worths(dataset):
    dataset, flows, worth = dataset
    np.testing.assert_array_equal(dataset.untrained[0], in_short(-flows))
    np.testing.assert_array_equal(dataset.alone[0], in_short(flows[:, 0]))
    np.testing.assert_array_equal(dataset.worth[0], in_short(worth))
    middle = dataset.relevance.sel(rows="middle")[0]
    np.testing.assert_array_equal(middle, in_short(-worth))
    np.testing.assert_array_equal(dataset.place, [[0, 1], [1, 0]])
