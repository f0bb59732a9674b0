"""Diverse subsets against loops, determinants and scikit-learn; random subsets and strata."""

from functools import partial

import jax
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.selection import baselines, diversity

KEY = jax.random.key(0)
determinantal = jit_numpy(diversity.determinantal, static_argnums=(1, 2))
medoids = jit_numpy(partial(diversity.medoids, key=KEY), static_argnums=1)
RULES = {"determinantal": lambda points, size: determinantal(points, size, 0.0), "medoids": medoids}


def draw(m=12, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


@pytest.mark.parametrize(("ridge", "size"), [(0.0, 4), (0.5, 8)])
def test_the_next_point_raises_the_determinant_most(ridge, size):
    for seed in range(3):
        points, chosen = draw(seed=seed), []
        kernel = points @ points.T + ridge * np.eye(len(points))
        for _ in range(size):
            left = [i for i in range(len(points)) if i not in chosen]
            gains = [
                np.linalg.slogdet(kernel[np.ix_(s, s)])[1] for s in ([*chosen, i] for i in left)
            ]
            chosen.append(left[int(np.argmax(gains))])
        assert determinantal(points, size, ridge).tolist() == chosen


def test_of_points_that_add_nothing_the_lowest_index_is_taken():
    copies = determinantal(np.repeat(draw(m=6), 2, axis=0), 4, 0.0)
    assert len(set((copies // 2).tolist())) == 4
    assert (copies % 2 == 0).all()
    plane = 100 * draw(12, 2) @ draw(2, 4, 1)  # after two picks only rounding is left
    picked = determinantal(plane, 4, 0.0).tolist()
    assert picked[2:] == [i for i in range(12) if i not in picked[:2]][:2]


def test_medoids_of_separated_clusters_are_those_of_scikit_learn_largest_first():
    from sklearn.cluster import KMeans

    sizes, p = (40, 25, 10, 5), 3
    labels = np.repeat(np.arange(4), sizes)
    corners = 10 * np.concatenate([np.zeros((1, p)), np.eye(p)])
    points = corners[labels] + 0.5 * draw(len(labels), p)
    centres = KMeans(4, n_init=10, random_state=0).fit(points).cluster_centers_
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(0)
    picked = medoids(points, 4)
    assert sorted(picked) == sorted(nearest)
    assert labels[picked].tolist() == [0, 1, 2, 3]
    assert len(set(medoids(np.repeat(draw(m=3), 4, axis=0), 6).tolist())) == 6  # copies


@pytest.mark.parametrize("name", RULES)
def test_no_choice_depends_on_the_unit_and_none_is_made_of_points_that_are_not_finite(name):
    points = draw().astype(np.float32)
    chosen = RULES[name](points, 2).tolist()
    assert max(chosen) < 12
    for unit in (2.0**120, 2.0**-80):
        assert RULES[name](points * np.float32(unit), 2).tolist() == chosen
    points[3, 1] = np.nan
    assert RULES[name](points, 2).tolist() == [12, 12]  # under jit: outside the pool
    options = {"medoids": (2, KEY)}.get(name, (2,))
    with pytest.raises(ValueError, match="points"):
        getattr(diversity, name)(points, *options)


def test_a_ridge_is_in_the_units_of_the_points():
    points = draw(m=40).astype(np.float32)
    plain = determinantal(points, 8, 0.5).tolist()
    for unit in (1e15, 1e-15):
        assert determinantal(points * np.float32(unit), 8, 0.5 * unit**2).tolist() == plain
    assert determinantal(points, 8, 50.0).tolist() != plain  # Control: another ridge


def test_random_subsets_are_subsets_and_uniform():
    subsets = np.asarray(baselines.random_subsets(jax.random.key(0), 5, 2, 4000))
    assert (subsets[:, 0] != subsets[:, 1]).all()
    counts = np.bincount(subsets.ravel(), minlength=5)
    assert np.abs(counts - 1600).max() < 5 * np.sqrt(4000 * 0.4 * 0.6)


@pytest.mark.parametrize("size", [10, 13])
def test_strata_keep_their_shares(size):
    labels = np.repeat([4, 7, 9], [90, 9, 1])
    keys = jax.random.split(jax.random.key(5), 2)
    drawn = np.stack([baselines.stratified(key, labels, size) for key in keys])
    for indices in drawn:
        assert len(np.unique(indices)) == size
        counts = np.bincount(labels[indices], minlength=10)[[4, 7, 9]]
        np.testing.assert_array_less(np.abs(counts - size * np.array([0.9, 0.09, 0.01])), 1)
    assert len(np.unique(drawn)) > size
