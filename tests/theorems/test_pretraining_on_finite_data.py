"""One layer fitted to N prompts over k tasks has a closed risk in high dimension, on tasks of its
own covariance (2405.11751) and of another (2509.26551).

Tasks are drawn from k fixed ones of covariance C; the layer is tested on T, and q and B hold the
means of C and of T. docs/theory, "Pretraining on finite data", "Tasks of another covariance".
"""

import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.theory import alignment, asymptotics
from pretraining import are_near, extrapolated_risks, stated_risks

SAME = (1.0, 1.0), (1.0, 1.0)
SMALL, LARGE_LAST = (0.6, 0.1), (0.3, 3.0)  # means .35 and 1.65: no mean is 1
CASES = [  # few prompts or many, few tasks or many; and terms that are wrong there
    (*SAME, (4.0, 1.0, 0.3, 0.1), [{"left": 0.0}, {"seen": 0.0}]),  # ν is missing
    (*SAME, (1.0, 0.5, 3.0, 1.0), [{"q": 1.0}]),  # without the noise
    (LARGE_LAST, LARGE_LAST, (0.5, 0.5, 3.0, 0.1), []),
    # (m + ρ)/α with the wrong mean m: of T, or 1, in q, and of C in B
    (LARGE_LAST, SMALL, (0.5, 0.5, 3.0, 0.1), [{"q": 0.45 / 0.5}]),
    (SMALL, LARGE_LAST, (0.5, 1.5, 3.0, 0.1), [{"q": 3.5}, {"q": 2.2}, {"spread": 0.9}]),
    (LARGE_LAST, SMALL, (2.0, 1.5, 0.3, 0.1), [{"spread": 1.75 / 2.0}]),
]
aligned_risk = jit_numpy(alignment.aligned_risk)


@pytest.mark.parametrize(("train", "test", "place", "wrong"), CASES)
def test_the_simulated_risks_approach_the_closed_form(train, test, place, wrong):
    closed = np.array(aligned_risk(np.array(train), np.array(test), *place))
    found = extrapolated_risks(train, test, place)
    assert are_near(found, closed)
    np.testing.assert_allclose(stated_risks(train, test, place), closed, rtol=0.01)
    same = aligned_risk(np.ones(2), np.ones(2), *place)
    np.testing.assert_allclose(same, asymptotics.ridgeless_risk(*place), rtol=1e-12)
    for terms in wrong:  # Controls
        assert not are_near(found, stated_risks(train, test, place, **terms))
    if (train, test) == SAME:  # and a new task in every prompt
        new = np.array(asymptotics.ridgeless_risk(place[0], np.inf, *place[2:]))
        assert not are_near(found, new)


def test_with_a_penalty_too_where_without_one_the_risk_is_infinite():
    place = (1.0, 0.5, 1.0, 0.1)  # τ = 1
    assert np.isinf(asymptotics.ridgeless_risk(*place)).all()
    closed = np.array(asymptotics.ridge_risk(*place, 0.3))
    assert are_near(extrapolated_risks(*SAME, place, 0.3), closed)
    np.testing.assert_allclose(stated_risks(*SAME, place, 0.3), closed, rtol=0.01)


def test_without_lack_of_prompts_tasks_are_memorised_up_to_one_a_dimension():
    for kappa in (0.3, 0.8, 1.5):
        found = asymptotics.ridgeless_risk(1e7, kappa, np.inf, 0.1)
        tasks = np.random.default_rng(0).standard_normal((round(kappa * 200), 200))
        missed = 200 - np.linalg.matrix_rank(tasks)  # dimensions of which no task says anything
        np.testing.assert_allclose(found, [0.1 + missed / 200, 0.1], atol=1e-5)
    # Control: where demonstrations grow as prompts do, noise adds to new tasks.
    for ratio, noise_var in ((1.0, 1.0), (0.2, 0.5)):
        new, _ = asymptotics.ridgeless_risk(1e7, 0.5, 1e7 / ratio, noise_var)
        added = noise_var * 0.5 * ratio / (1 + noise_var)
        np.testing.assert_allclose(new, noise_var + 0.5 + added, atol=1e-5)
