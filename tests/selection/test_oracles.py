"""Recomputed picks, leave-one-out and the best subset, against loops and on exact examples."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import oracles, scores

M, D = 6, 3


def draw(seed=0):
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(M, D + 1)), rng.normal(size=D), rng.normal(size=D)
    return jax.tree.map(jnp.asarray, drawn)


def fit(pool, chosen):
    """The shortest weights of least squares on what is chosen."""
    return jnp.linalg.pinv(chosen[:, None] * pool[:, :-1]) @ (chosen * pool[:, -1])


def squared_error(pool, query, target, chosen):
    return (fit(pool, chosen) @ query - target) ** 2


def mark(indices, m=M):
    return jnp.zeros(m).at[jnp.asarray(indices)].set(1)


def test_picking_is_a_loop_over_picks():
    pool, query, _ = draw()
    start = mark([4])

    @jax.jit
    def score(chosen):
        return scores.contribution(pool, query, fit(pool, chosen))

    chosen, expected = start, []
    for _ in range(3):
        best = max(np.flatnonzero(chosen == 0), key=lambda i: (score(chosen)[i], -i))
        expected.append(int(best))
        chosen = chosen.at[best].set(1)
    assert oracles.pick_greedily(score, start, 3).tolist() == expected
    assert 4 not in expected


def test_a_score_that_ignores_what_is_chosen_is_selected_statically():
    values = jnp.array([0.0, 2.0, -0.0, 3.0, 2.0, -1.0])
    picked = oracles.pick_greedily(lambda chosen: values, jnp.zeros(6), 6)
    assert picked.tolist() == scores.select(values, 6).tolist() == [3, 1, 4, 0, 2, 5]


def test_the_flow_of_joining_is_that_of_a_prompt_with_one_more():
    pool, query, _ = draw()
    rng = np.random.default_rng(1)
    params = linear_attention.Params(*jnp.asarray(0.4 * rng.normal(size=(2, 2, 2, D + 1, D + 1))))
    start = mark([1, 4])

    def flow(i):  # of the last demonstration
        rows = pool[jnp.array([1, 4, 0]).at[2].set(i)]
        prompt = Prompt(rows[:, :-1], rows[:, -1], query, jnp.zeros(()))
        return amplification.demonstration_flow(linear_attention.forward, params, prompt)[:, -1]

    @jax.jit
    def run():
        join = partial(oracles.flow_joining, params, pool, query)
        alone = scores.encode_flow(params, pool) @ jnp.pad(query, (0, 1))
        flows = jax.vmap(flow, out_axes=1)(jnp.arange(M))
        return jax.vmap(join)(jnp.stack([start, jnp.zeros(M)])), jnp.stack([flows, alone])

    np.testing.assert_allclose(*run(), atol=1e-10)


@pytest.mark.parametrize("start", [[], [0, 2, 3], list(range(M))])
def test_leaving_out_is_removal_inside_and_addition_outside(start):
    pool, query, w = draw()
    error = jax.jit(lambda chosen: squared_error(pool, query, query @ w, chosen))
    expected = [
        error(mark([j for j in start if j != i] or np.array([], int)))
        - error(mark(sorted({*start, i})))
        for i in range(M)
    ]
    found = jax.jit(partial(oracles.leave_one_out, error))(mark(np.array(start, int)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_best_subset_is_the_least_of_all():
    pool, query, w = draw()

    def error(indices):
        return squared_error(pool, query, query @ w, mark(indices))

    every = list(itertools.combinations(range(M), 2))
    errors = jax.jit(jax.vmap(error))(jnp.array(every)).tolist()
    indices, least = jax.jit(oracles.best_subset, static_argnums=(0, 1, 2))(error, M, 2)
    assert tuple(indices.tolist()) == every[int(np.argmin(errors))]
    np.testing.assert_allclose(least, min(errors), atol=1e-12)


def test_of_equal_subsets_the_first_is_the_best():
    indices, least = oracles.best_subset(lambda indices: jnp.zeros(()), 5, 3)
    assert indices.tolist() == [0, 1, 2]
    assert least == 0


def test_nan_is_refused_and_under_jit_never_picked():
    values = jnp.array([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="1 scores are NaN or infinite at pick 0"):
        oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 2)
    picked = jax.jit(lambda: oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 3))()
    assert picked.tolist() == [2, 0, 3]
    with pytest.raises(ValueError, match=r"1 of 3 errors are NaN, the first of subset \[1\]"):
        oracles.best_subset(lambda indices: values[indices[0]], 3, 1)
    indices, _ = jax.jit(lambda: oracles.best_subset(lambda i: values[i[0]], 3, 1))()
    assert indices.tolist() == [0]
    indices, least = oracles.best_subset(lambda indices: jnp.array(jnp.inf), 3, 1)
    assert indices.tolist() == [3]
    assert least == jnp.inf


def test_an_open_score_may_be_nan_once_it_is_chosen():
    picked = oracles.pick_greedily(
        lambda chosen: jnp.where(chosen > 0, jnp.nan, jnp.arange(3.0)), jnp.zeros(3), 3
    )
    assert picked.tolist() == [2, 1, 0]


def test_marks_may_be_numpys():
    marks = np.array([1.0, 0.0, 1.0])
    worth = oracles.leave_one_out(lambda chosen: chosen @ jnp.arange(3.0), marks)
    np.testing.assert_array_equal(worth, [0, -1, -2])


def test_too_many_picks_and_subsets_are_refused():
    with pytest.raises(ValueError, match="size = 3 of 2 open"):
        oracles.pick_greedily(lambda chosen: chosen, jnp.array([1.0, 0.0, 0.0]), 3)
    with pytest.raises(ValueError, match="other numbers than 0 and 1"):
        oracles.leave_one_out(lambda chosen: chosen.sum(), jnp.array([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"75287520 subsets of 5.*smaller pool"):
        oracles.best_subset(lambda indices: jnp.zeros(()), 100, 5)


def test_how_many_are_tried_at_a_time_is_a_matter_of_memory():
    pool, query, w = draw()

    def error(chosen):
        return squared_error(pool, query, query @ w, chosen)

    start = mark(np.array([1, 4]))
    few = oracles.leave_one_out(error, start, together=5)
    np.testing.assert_allclose(few, oracles.leave_one_out(error, start), atol=1e-12)

    def of_subset(indices):
        return error(mark(indices))

    few, whole = (oracles.best_subset(of_subset, M, 2, together=t) for t in (5, 256))
    np.testing.assert_array_equal(few[0], whole[0])
    for call in (
        lambda: oracles.leave_one_out(error, start, together=0),
        lambda: oracles.best_subset(of_subset, M, 2, together=0),
    ):
        with pytest.raises(ValueError, match="together = 0: it is at least 1"):
            call()
