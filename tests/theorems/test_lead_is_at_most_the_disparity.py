"""The median log ratio of pairs turned by their first layer is at most the median |log ratio|.

They agree at the first layer, so that the lead never grows by more than the disparity, and falls
where layers only reshuffle. Derived here; docs/theory, "The amplification theorem".
"""

import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.analyses import disparity

summarise = jit_numpy(disparity.summarise)


def draw(seed, layers=5):  # log ratios of pairs, heavy-tailed, some of which keep their order
    rng = np.random.default_rng(seed)
    return rng.normal(size=(64, 1)) + rng.standard_t(3, size=(64, layers))


def draw_reshuffled(seed):  # each of two layers as often first as the other
    pair = draw(seed)[:, :2]
    return np.concatenate([pair, pair[:, ::-1]])


def median_size(rows):
    return np.median(np.abs(rows), axis=0)


@seeds
def test_the_lead_starts_as_the_disparity_and_is_never_above_it(seed):
    rows = draw(seed)
    lead = summarise(rows).median
    assert abs(lead[0] - median_size(rows)[0]) < 1e-12
    assert np.all(lead <= median_size(rows) + 1e-12)
    reshuffled = draw_reshuffled(seed)
    assert abs(np.diff(median_size(reshuffled))[0]) < 1e-12
    assert np.diff(summarise(reshuffled).median)[0] < 0


def test_control_turned_by_the_last_layer_the_same_pairs_rise():
    rows = draw_reshuffled(0)
    turned = np.median(rows * np.sign(rows[:, -1:]), axis=0)
    assert np.diff(turned)[0] > 0
    assert median_size(rows)[0] - turned[0] > 1e-2
