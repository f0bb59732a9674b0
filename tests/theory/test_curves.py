"""Learning curves where there is nothing to learn, or no noise."""

import numpy as np

from lsa_lab.theory import learning_curves


def test_nothing_to_learn_from_leaves_the_risk_of_predicting_zero():
    curves = [learning_curves.additive, learning_curves.delta_rule, learning_curves.implicit]
    for curve in [*curves, learning_curves.ridge, learning_curves.delta]:
        np.testing.assert_array_equal(curve(0, 4, 0.1), [1.0])


def test_without_noise_the_last_direction_is_learnt():
    np.testing.assert_allclose(learning_curves.delta_rule(60, 1, 0.0)[-1], (2 / 3) ** 60, rtol=1e-9)
    np.testing.assert_allclose(learning_curves.ridge(4, 4, 0.0), [1, 0.75, 0.5, 0.25, 0], atol=1e-9)
    assert np.isfinite(learning_curves.delta_rule(4000, 1, 0.0)).all()
