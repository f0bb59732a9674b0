"""Diverse subsets against loops, determinants, the hat matrix and scikit-learn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.selection import diversity, scores

farthest_point = jax.jit(diversity.farthest_point, static_argnums=1)
determinantal = jax.jit(diversity.determinantal, static_argnums=(1, 2))
k_means = jax.jit(diversity.k_means, static_argnums=1)
medoids = jax.jit(diversity.medoids, static_argnums=1)


def draw(m=12, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(m, p))


def clusters(sizes=(40, 25, 10, 5), p=3):
    """Points around corners at distance 10, each with spread 1/2; the corner of each."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    corners = 10 * np.concatenate([np.zeros((1, p)), np.eye(p)])
    return corners[labels] + 0.5 * rng.normal(size=(len(labels), p)), labels


@pytest.mark.parametrize("seed", range(3))
def test_the_next_point_is_the_farthest_from_the_chosen(seed):
    points = draw(seed=seed)
    chosen = [int(np.argmin(np.linalg.norm(points - points.mean(0), axis=1)))]
    while len(chosen) < 6:
        gaps = np.linalg.norm(points[:, None] - points[None, chosen], axis=2).min(1)
        chosen.append(int(np.argmax(gaps)))
    assert farthest_point(points, 6).tolist() == chosen


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


def test_a_duplicate_adds_no_determinant():
    points = np.repeat(draw(m=5), 2, axis=0)
    picked = determinantal(points, 4, 0.0)
    assert len(set((picked // 2).tolist())) == 4
    assert (picked % 2 == 0).all()  # the lower index of each pair


@pytest.mark.parametrize("seed", range(3))
def test_of_points_that_add_nothing_the_lowest_index_is_taken(seed):
    points = 100 * draw(12, 2, seed) @ draw(2, 4, seed + 1)  # after two picks only rounding is left
    picked = determinantal(points, 4, 0.0).tolist()
    assert picked[2:] == [i for i in range(12) if i not in picked[:2]][:2]


def test_quality_and_diversity_are_weighed():
    points = jnp.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    assert determinantal(points * jnp.array([[3.0], [2.0], [1.0]]), 2, 0.0).tolist() == [0, 1]
    assert determinantal(points * jnp.array([[3.0], [1.0], [1.0]]), 2, 0.0).tolist() == [0, 2]


@pytest.mark.parametrize(("m", "rank"), [(12, 4), (12, 2), (3, 3)])
def test_leverage_is_the_diagonal_of_the_hat_matrix(m, rank):
    points = draw(m, rank) @ draw(rank, 4, seed=1)
    found = jax.jit(diversity.leverage)(points)
    np.testing.assert_allclose(found, np.diag(points @ np.linalg.pinv(points)), atol=1e-10)
    np.testing.assert_allclose(found.sum(), rank, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_separated_clusters_are_found_as_scikit_learn_finds_them(seed):
    from sklearn.cluster import KMeans

    points, labels = clusters()
    centres, found, inertia = k_means(points, 4, jax.random.key(seed))
    reference = KMeans(4, n_init=10, random_state=0).fit(np.array(points))
    np.testing.assert_allclose(inertia, reference.inertia_, rtol=1e-10)
    np.testing.assert_allclose(
        np.sort(centres, axis=0), np.sort(reference.cluster_centers_, axis=0), atol=1e-10
    )
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 4
    picked = medoids(points, 4, jax.random.key(seed))
    assert labels[np.array(picked)].tolist() == [0, 1, 2, 3]  # the largest cluster first
    for i, cluster in zip(picked, range(4), strict=True):
        member = np.flatnonzero(labels == cluster)
        gaps = np.linalg.norm(points[member] - points[member].mean(0)[None], axis=1)
        assert int(i) == member[int(np.argmin(gaps))]


def test_as_many_seeds_as_different_points_are_all_of_them(swap):
    swap(diversity, "_RESTARTS", 1)
    starts = jax.jit(jax.vmap(lambda points, key: diversity.k_means(points, 5, key)[2], (None, 0)))
    keys = jax.random.split(jax.random.key(0), 10)
    np.testing.assert_allclose(starts(np.repeat(draw(m=5), 4, axis=0), keys), 0, atol=1e-20)
    assert (starts(draw(m=20), keys) > 1).all()  # Control: more points than seeds


def test_a_cluster_without_points_stays_where_it_began():
    points = jnp.asarray([[0.0], [0.0], [4.0]])
    centres, _, inertia = diversity.k_means(points, 3, jax.random.key(0))
    assert sorted(set(np.round(centres[:, 0], 12).tolist())) == [0, 4]
    assert inertia < 1e-20


def test_lloyd_ends_after_its_rounds(swap):
    points, inertia = draw(m=60), []
    for rounds in (0, 1, 100):
        swap(diversity, "_ROUNDS", rounds)
        centres, _, squares = diversity.k_means(points, 5, jax.random.key(0))
        among = np.isclose(centres[:, None], points[None], atol=1e-12).all(2).any(1)
        assert among.all() == (rounds == 0)  # seeds are points
        inertia.append(float(squares))
    assert inertia == sorted(set(inertia), reverse=True)


def test_more_medoids_than_different_points_are_different_indices():
    points = np.repeat(draw(m=2), 4, axis=0)
    for size in (2, 6):
        picked = medoids(points, size, jax.random.key(0)).tolist()
        assert len(set(picked)) == size
        assert {i // 4 for i in picked} == {0, 1}


RULES = {
    "farthest_point": diversity.farthest_point,
    "determinantal": diversity.determinantal,
    "medoids": partial(diversity.medoids, key=jax.random.key(0)),
}


# Of any unit of the points: what is found in theirs, and by what power of it numbers grow.
UNITLESS = {
    **{name: lambda points, rule=rule: (rule(points, 4),) for name, rule in RULES.items()},
    "leverage": lambda points: (diversity.leverage(points),),
    "k_means": lambda points: diversity.k_means(points, 4, jax.random.key(0)),
}
POWERS = {"k_means": (1, 0, 2)}


def in_another_unit(name, unit, by=jax.jit):
    """What is found of float32 points times ``unit``, back in theirs, and what is found of them."""
    points = clusters(p=4)[0].astype(jnp.float32)  # of two points both are nearest to their mean
    rule = by(UNITLESS[name])
    found = rule((points * unit).astype(jnp.float32))
    powers = POWERS.get(name, (0,))
    back = [np.array(x, float) / unit**power for x, power in zip(found, powers, strict=True)]
    return back, rule(points)


@pytest.mark.parametrize(
    ("unit", "by"), [(1e37, jax.jit), (1e-25, lambda rule: rule), (2.0**30, jax.jit)]
)
@pytest.mark.parametrize("name", UNITLESS)
def test_no_answer_depends_on_the_unit_of_the_points(name, unit, by):
    for other, own in zip(*in_another_unit(name, unit, by), strict=True):
        own = np.array(own, float)
        if name == "k_means" and own.ndim == 0 and not 1e-18 < unit < 1e18:
            own = np.float64(np.inf if unit > 1 else 0)  # its squares have no place in float32
        np.testing.assert_allclose(other, own, rtol=1e-4, atol=1e-6)
        if unit == 2.0**30:
            np.testing.assert_array_equal(other, own)  # not a bit


@pytest.mark.parametrize(("unit", "by"), [(1e15, jax.jit), (1e-15, lambda rule: rule)])
def test_a_ridge_is_in_the_units_of_the_points(unit, by):
    points = draw(m=40).astype(jnp.float32)
    rule = by(lambda points, ridge: diversity.determinantal(points, 8, ridge))
    own = rule(points, jnp.float32(0.5)).tolist()
    assert rule(points * jnp.float32(unit), jnp.float32(0.5 * unit**2)).tolist() == own
    assert rule(points, jnp.float32(50)).tolist() != own  # Control: another ridge
    larger = rule(points * jnp.float32(1e-25), jnp.float32(0.5)).tolist()
    assert larger == list(range(8))  # beside it all points are equal


@pytest.mark.parametrize("name", RULES)
def test_points_that_are_not_finite_are_refused(name):
    points = np.where(np.arange(48).reshape(12, 4) == 13, np.nan, draw())
    with pytest.raises(ValueError, match="points holds 1 NaN"):
        RULES[name](points, 2)
    assert jax.jit(RULES[name], static_argnums=1)(points, 2).tolist() == [12, 12]


def test_under_jit_points_that_are_not_finite_make_indices_m_and_numbers_nan():
    points = np.where(np.arange(48).reshape(12, 4) == 13, np.inf, draw())
    for name, rule in UNITLESS.items():
        for found in jax.jit(rule)(points):
            is_index = jnp.issubdtype(found.dtype, jnp.integer)
            assert ((found == 12) if is_index else jnp.isnan(found)).all(), name
    assert scores.select(jax.jit(diversity.leverage)(draw()), 2).max() < 12  # Control
    select = jax.jit(scores.select, static_argnums=1)
    assert select(jax.jit(diversity.leverage)(points), 2).tolist() == [12, 12]
