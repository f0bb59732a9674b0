"""What closed forms of flows say where there is nothing to say."""

import numpy as np

from lsa_lab.theory import amplification


def test_after_a_blow_up_the_ratio_says_so():
    depths = np.array([0.5, 2.0, 5.0])
    ratio = amplification.one_coordinate_ratio(0.125, np.array([2.0, 1.0]), 0.0, depths)
    np.testing.assert_array_equal(np.isfinite(ratio), [True, False, False])
    np.testing.assert_array_equal(ratio[1:], [np.inf, np.nan])
    turned = amplification.one_coordinate_ratio(0.125, np.array([1.0, 2.0]), 0.0, depths[1:2])
    assert turned[0] == 0
