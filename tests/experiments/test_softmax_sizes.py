"""Balanced keys of one softmax head: what they are, and what has no length in them."""

import numpy as np

from experiments.descent import softmax_sizes


def test_balanced_keys_have_mean_zero_and_the_second_moments_of_the_queries():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 3))
    keys, queries = 2 + rng.normal(size=(50, 4)) @ mixing, rng.normal(size=(20, 3))
    form = softmax_sizes.balanced(keys, queries)
    values, vectors = np.linalg.eigh(form.metric)
    change = np.sqrt(values)[:, None] * vectors.T  # AᵀA is the metric
    ours, theirs = (keys - form.mean) @ change.T, queries @ np.linalg.inv(change)
    np.testing.assert_allclose(ours.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(ours.T @ ours / 50, theirs.T @ theirs / 20, rtol=1e-9, atol=1e-12)


def test_keys_that_no_query_reads_have_no_length():
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(20, 3)) * [1, 1, 0]
    form = softmax_sizes.balanced(rng.normal(size=(50, 3)) * [1, 2, 3], queries)
    assert np.linalg.matrix_rank(form.metric, tol=1e-9) == 2
