"""Diverse subsets against loops, determinants and scikit-learn."""

from functools import partial

import jax
import numpy as np
import pytest

from lsa_lab.selection import diversity

KEY = jax.random.key(0)
determinantal = jax.jit(diversity.determinantal, static_argnums=(1, 2))
medoids = jax.jit(partial(diversity.medoids, key=KEY), static_argnums=1)
RULES = {
    "determinantal": lambda points, size: determinantal(points, size, 0.0),
    "medoids": medoids,
}


def draw(m=12, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


@pytest.mark.parametrize(("ridge", "size"), [(0.0, 4), (0.5, 8)])
@pytest.mark.parametrize("seed", range(3))
def test_the_next_point_raises_the_determinant_most(seed, ridge, size):
    points = draw(seed=seed)
    kernel = points @ points.T + ridge * np.eye(len(points))
    chosen = []
    for _ in range(size):
        left = [i for i in range(len(points)) if i not in chosen]
        gains = [np.linalg.slogdet(kernel[np.ix_([*chosen, i], [*chosen, i])])[1] for i in left]
        chosen.append(left[int(np.argmax(gains))])
    assert determinantal(points, size, ridge).tolist() == chosen


def test_of_points_that_add_nothing_the_lowest_index_is_taken():
    copies = determinantal(np.repeat(draw(m=5), 2, axis=0), 4, 0.0)
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
    assert sorted(picked.tolist()) == sorted(nearest.tolist())
    assert labels[picked].tolist() == [0, 1, 2, 3]
    assert len(set(medoids(np.repeat(draw(m=3), 4, axis=0), 6).tolist())) == 6  # copies


@pytest.mark.parametrize("unit", [2.0**120, 2.0**-80])
@pytest.mark.parametrize("name", RULES)
def test_no_choice_depends_on_the_unit_of_the_points(name, unit):
    points = draw(m=30).astype(np.float32)
    scaled = points * np.float32(unit)
    assert RULES[name](scaled, 4).tolist() == RULES[name](points, 4).tolist()


@pytest.mark.parametrize("unit", [1e15, 1e-15])
def test_a_ridge_is_in_the_units_of_the_points(unit):
    points = draw(m=40).astype(np.float32)
    plain = determinantal(points, 8, 0.5).tolist()
    assert determinantal(points * np.float32(unit), 8, 0.5 * unit**2).tolist() == plain
    assert determinantal(points, 8, 50.0).tolist() != plain  # Control: another ridge


@pytest.mark.parametrize("name", RULES)
def test_points_that_are_not_finite_are_refused_and_under_jit_outside_the_pool(name):
    points = np.where(np.arange(48).reshape(12, 4) == 13, np.nan, draw())
    assert max(RULES[name](draw(), 2)) < 12  # Control
    assert RULES[name](points, 2).tolist() == [12, 12]
    options = {"medoids": (2, KEY)}.get(name, (2,))
    with pytest.raises(ValueError, match="points"):
        getattr(diversity, name)(points, *options)
