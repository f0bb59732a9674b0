"""Recomputed picks and leave-one-out, against loops and on exact examples."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import draw_stack, jit_numpy
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import oracles, scores

M, D = 6, 3
RNG = np.random.default_rng(0)
POOL, QUERY, TASK = RNG.normal(size=(M, D + 1)), RNG.normal(size=D), RNG.normal(size=D)


def fit(chosen):
    """The shortest weights of least squares on the chosen rows."""
    return jnp.linalg.pinv(chosen[:, None] * POOL[:, :-1]) @ (chosen * POOL[:, -1])


def mark(indices):
    return np.isin(np.arange(M), indices).astype(float)


def test_picking_is_a_loop_over_picks():
    score = jax.jit(lambda chosen: scores.contribution(POOL, QUERY, fit(chosen)))
    chosen, expected = mark([4]), []
    picked = oracles.pick_greedily(score, chosen, 3)
    for _ in range(3):
        values = np.asarray(score(chosen))
        expected.append(int(np.where(chosen == 0, values, -1).argmax()))
        chosen[expected[-1]] = 1
    assert picked.tolist() == expected
    assert 4 not in expected


def test_a_candidate_has_the_flow_of_a_prompt_with_it():
    params = draw_stack(RNG, 2, 2, D + 1, 0.4)
    run = jit_numpy(partial(amplification.demonstration_flow, linear_attention.forward))

    def flow(i):  # of the last demonstration
        rows = POOL[[1, 4, i]]
        return run(params, Prompt(rows[:, :-1], rows[:, -1], QUERY, np.zeros(())))[:, -1]

    candidates = jit_numpy(oracles.candidate_flows)
    found, alone = (candidates(params, POOL, QUERY, mark(start)) for start in ([1, 4], []))
    np.testing.assert_allclose(found, np.stack([flow(i) for i in range(M)], 1), atol=1e-10)
    encoded = scores.encode_flow(params, POOL)  # one matrix for every query
    np.testing.assert_allclose(alone, encoded @ np.append(QUERY, 0), atol=1e-10)
    other = candidates(params, POOL, -QUERY[::-1], mark([]))
    np.testing.assert_allclose(other, encoded @ np.append(-QUERY[::-1], 0), atol=1e-10)


@pytest.mark.parametrize("start", [[], [0, 2, 3], list(range(M))])
def test_leaving_out_is_removal_inside_and_addition_outside(start):
    error = jax.jit(lambda chosen: (fit(chosen) @ QUERY - QUERY @ TASK) ** 2)
    without, added = (
        np.array([error(mark(change(i))) for i in range(M)])
        for change in (lambda i: [j for j in start if j != i], lambda i: [*start, i])
    )
    for run in (oracles.leave_one_out, jax.jit(oracles.leave_one_out, static_argnums=0)):
        np.testing.assert_allclose(run(error, mark(start)), without - added, atol=1e-12)


def test_nan_and_other_marks_are_refused_and_under_jit_never_picked():
    with pytest.raises(ValueError, match="chosen"):
        oracles.leave_one_out(lambda chosen: chosen.sum(), np.array([0.5, 1.0]))
    values = jnp.array([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="at pick 0"):
        oracles.pick_greedily(lambda chosen: values, np.zeros(3), 2)
    picked = jax.jit(lambda: oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 3))()
    assert picked.tolist() == [2, 0, 3]
    after = oracles.pick_greedily(  # a chosen one's score may be NaN
        lambda chosen: jnp.where(chosen > 0, jnp.nan, jnp.arange(3.0)), np.zeros(3), 3
    )
    assert after.tolist() == [2, 1, 0]
