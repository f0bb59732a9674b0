"""The median log ratio of pairs turned by their first layer is at most the median |log ratio|.

They agree at the first layer, so that the lead never grows by more than the disparity, and falls
where layers only reshuffle. Derived here; docs/theory, "The amplification theorem".
"""

import numpy as np

from draws import jit_numpy, seeds
from lsa_lab.analyses import disparity

summarise = jit_numpy(disparity.summarise)


def median_size(rows):
    return np.median(np.abs(rows), axis=0)


@seeds
def test_the_lead_starts_as_the_disparity_and_is_never_above_it(seed):
    rng = np.random.default_rng(seed)  # log ratios of pairs, some of which keep their order
    rows = rng.normal(size=(64, 1)) + rng.standard_t(3, size=(64, 5))
    lead = summarise(rows).median
    assert abs(lead[0] - median_size(rows)[0]) < 1e-12
    assert np.all(lead <= median_size(rows) + 1e-12)
    reshuffled = np.concatenate([rows[:, :2], rows[:, 1::-1]])  # each layer as often first
    assert abs(np.diff(median_size(reshuffled))[0]) < 1e-12
    assert np.diff(summarise(reshuffled).median)[0] < 0
    if seed == 0:  # Control: turned by the last layer the same pairs rise
        turned = np.median(reshuffled * np.sign(reshuffled[:, -1:]), axis=0)
        assert np.diff(turned)[0] > 0
        assert median_size(reshuffled)[0] - turned[0] > 1e-2
