"""The status of a run follows from its losses."""

import numpy as np
import pytest

from lsa_lab.training.status import DivergedError, Status, classify_run, refuse_divergence

T = np.arange(500.0)


def classify(losses):
    return classify_run(True, len(losses), losses).kind


def test_level_means_that_the_loss_has_stopped_falling():
    rng, early = np.random.default_rng(0), np.exp(-T / 20)
    kinds = [classify(early + 1 + 0.1 * rng.normal(size=500)) for _ in range(300)]
    assert 0.9 < np.mean([kind == "level" for kind in kinds]) < 1  # two standard errors
    constant = (0.04 ** T[:300], 1 + 0.8 ** T[:300])  # 0 from step 232, the last digits from 165
    assert [classify(losses) for losses in constant] == ["level"] * 2
    # Controls: falling, falling under noise, rising, too short to tell, on its way to 0 and to 1.
    falling = np.exp(-T / 100), 2 - T / 250 + 0.1 * rng.normal(size=500)
    controls = (*falling, T, early[:49], 0.9 ** T[:300], 1 + 0.95 ** T[:300])
    assert [classify(losses) for losses in controls] == ["finished"] * 6


def test_a_run_whose_loss_never_fell_is_not_called_trained():
    rng = np.random.default_rng(1)
    assert classify(np.ones(500)) == "not trained"
    kinds = [classify(1 + rng.normal(size=500)) for _ in range(300)]
    assert np.mean([kind == "level" for kind in kinds]) < 0.05
    assert np.mean([kind == "not trained" for kind in kinds]) > 0.85
    # Control: a fall within the first two steps.
    assert classify(np.r_[9.0, 4, 1 + 0.1 * rng.normal(size=498)]) == "level"


def test_a_training_without_a_run_that_it_needs_is_refused():
    ends = (Status("finished", 90), Status("diverged", 7))
    refuse_divergence(ends, "the proxy")
    refuse_divergence(ends[0], "the proxy", needs_all=True)
    with pytest.raises(DivergedError, match="needs all its runs: run 1 of 2 diverged at step 7"):
        refuse_divergence(ends, "the proxy", needs_all=True)
    with pytest.raises(DivergedError, match="no run left: run 0 of 2 diverged"):
        refuse_divergence(ends[1:] * 2, "the proxy")
