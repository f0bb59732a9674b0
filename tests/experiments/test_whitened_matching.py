"""What whitened matching is compared on: gaps of descent, scaled rows, bounds."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import subsets
from experiments.matching.whitened_matching import cases, compute
from experiments.matching.whitened_matching.config import Case, Config
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks.pools import Pool

TINY = Config(
    d=2, m=24, n=8, dims=(2,), sizes=(4,), most=3, depths=(1, 3), depth=3, queries=8, runs=2
)
KEYS = jax.random.split(jax.random.key(0), 2)
measure = jax.jit(cases.measure_subsets, static_argnums=0)
members = jax.jit(subsets.members, static_argnums=1)


def draw(case, d=2, width=2):
    variances = np.tile(cases.variances(case.spectrum, d, width), (2, 1))
    queried = np.tile(cases.variances(case.queried or case.spectrum, d, width), (2, 1))
    return cases.sample(TINY, case, variances, queried, KEYS)


def test_the_gap_is_that_of_descent_by_hand():
    pool, queries = jax.tree.map(lambda leaf: np.asarray(leaf)[0], draw(Case()))
    indices = np.arange(8)

    def descend(x, y):
        w = np.zeros(2)
        for _ in range(3):
            w = w + TINY.step * x.T @ (y - x @ w) / len(x)
        return w

    gap, error, _, _ = measure(TINY, pool, queries, members(indices[None], TINY.m))
    few, whole = (queries.x @ descend(pool.x[i], pool.y[i]) for i in (indices, np.arange(24)))
    np.testing.assert_allclose(gap[0, 1], np.linalg.norm(few - whole) / np.linalg.norm(whole))
    np.testing.assert_allclose(error[0, 1], ((few - queries.clean) ** 2).mean())


def test_scaled_rows_have_one_size_and_objectives_are_the_librarys():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(24, 3)) * np.array([1.0, 0.0, 50.0])
    np.testing.assert_allclose(np.std(compute.scale(jnp.asarray(gradients)), axis=0), [1, 0, 1])
    indices = rng.permutation(24)[:8]
    gap = jax.jit(subsets.gaps)(gradients, members(indices[None], 24))[0]
    expected = gradient_matching.certify(gradients, indices).objective
    np.testing.assert_allclose(gap, expected)


def test_the_whitened_choice_keeps_its_bound():
    pool, queries = draw(Case())
    gradients = cases.gradients(TINY, Pool(pool.x, pool.y), 3, KEYS, None)
    values = compute.compare(TINY, 8, pool, queries, gradients, KEYS)
    limits = compute.bounds(TINY, pool, values["reached"])
    assert (np.asarray(values["distance"]) <= np.asarray(limits)).all()
