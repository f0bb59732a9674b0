"""Readings of label scores: against scikit-learn, and what a constant bias changes."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import f1_score, roc_auc_score

from lsa_lab.lm import readings

RNG = np.random.default_rng(0)


def batch(queries=60, classes=2, ties=False):
    """Scores that know something of their labels, all classes among them."""
    labels = np.concatenate([np.arange(classes), RNG.integers(0, classes, queries - classes)])
    scores = RNG.normal(size=(queries, classes)) * 3 + 2 * np.eye(classes)[labels]
    return (scores[np.arange(queries) % 7] if ties else scores), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_auc_and_f1_are_those_of_scikit_learn(classes, ties):
    scores, labels = batch(classes=classes, ties=ties)
    p = softmax(scores, axis=1)
    expected = roc_auc_score(labels, p[:, 1] if classes == 2 else p, multi_class="ovr")
    np.testing.assert_allclose(readings.auc(scores, labels), expected, rtol=1e-12)
    labels[labels == 0] = 1  # one class is never right
    f1 = f1_score(labels, scores.argmax(1), average=None, labels=range(classes), zero_division=0)
    np.testing.assert_allclose(readings.f1(scores, labels), f1.mean(), rtol=1e-12)
    np.testing.assert_allclose(readings.f1(scores, labels, positive=1), f1[1], rtol=1e-12)


def test_the_best_shift_is_best_and_undoes_a_constant_bias():
    scores, labels = batch(101)
    biased = readings.shift_scores(scores, -3.0)
    for reading in (readings.auc, readings.accuracy_after_best_shift):
        np.testing.assert_allclose(reading(biased, labels), reading(scores, labels), rtol=1e-12)
    assert readings.accuracy(biased, labels) != readings.accuracy(scores, labels)
    grid = np.linspace(-12, 12, 481)
    rights = [readings.accuracy(readings.shift_scores(scores, b), labels) for b in grid]
    moved = readings.shift_scores(scores, readings.best_threshold_shift(scores, labels))
    assert readings.accuracy(moved, labels) >= max(rights)
    assert readings.best_threshold_shift([[1, 0], [0, 1]], [0, 1]) == 0.0


def test_a_shift_is_not_judged_where_it_is_fitted():
    """Scores that know nothing gain by a threshold fitted to them, and nothing by one of others."""
    fitted, apart = [], []
    for _ in range(200):
        labels = np.arange(20) % 2
        scores = RNG.normal(size=(20, 2))
        moved = readings.shift_scores(scores, readings.best_threshold_shift(scores, labels))
        fitted.append(readings.accuracy(moved, labels))
        apart.append(readings.accuracy_after_best_shift(scores, labels))
    assert np.mean(fitted) > 0.6
    assert np.mean(apart) < 0.51


def test_the_share_of_an_affine_map_does_not_feel_the_size_of_a_change():
    rng = np.random.default_rng(1)
    z, noise = rng.normal(size=(2, 4000))
    np.testing.assert_allclose(readings.affine_share(z, 0.3 * z - 2), 1, atol=1e-12)
    for size in (1.0, 0.01):  # half of the change is noise
        share = readings.affine_share(z, z + size * (z + noise))
        np.testing.assert_allclose(share, 0.5, atol=0.03)
    assert abs(readings.affine_share(z, z + noise)) < 0.01
    assert readings.affine_share(z, z) == 1
