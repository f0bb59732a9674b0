"""Recomputed picks and leave-one-out, against loops and on exact examples."""

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
    """The shortest weights of least squares on the chosen rows."""
    return jnp.linalg.pinv(chosen[:, None] * pool[:, :-1]) @ (chosen * pool[:, -1])


def mark(indices, m=M):
    return jnp.zeros(m).at[jnp.asarray(indices, int)].set(1)


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


def test_a_candidate_has_the_flow_of_a_prompt_with_it():
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
        candidates = partial(oracles.candidate_flows, params, pool, query)
        alone = scores.encode_flow(params, pool) @ jnp.pad(query, (0, 1))
        flows = jax.vmap(flow, out_axes=1)(jnp.arange(M))
        return jax.vmap(candidates)(jnp.stack([start, jnp.zeros(M)])), jnp.stack([flows, alone])

    np.testing.assert_allclose(*run(), atol=1e-10)


@pytest.mark.parametrize("start", [[], [0, 2, 3], list(range(M))])
def test_leaving_out_is_removal_inside_and_addition_outside(start):
    pool, query, w = draw()
    error = jax.jit(lambda chosen: (fit(pool, chosen) @ query - query @ w) ** 2)
    expected = [
        error(mark([j for j in start if j != i])) - error(mark(sorted({*start, i})))
        for i in range(M)
    ]
    found = jax.jit(partial(oracles.leave_one_out, error))(mark(start))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(oracles.leave_one_out(error, np.array(mark(start))), found)


def test_nan_and_other_marks_are_refused_and_under_jit_never_picked():
    with pytest.raises(ValueError, match="chosen"):
        oracles.leave_one_out(lambda chosen: chosen.sum(), jnp.array([0.5, 1.0]))
    values = jnp.array([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="at pick 0"):
        oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 2)
    picked = jax.jit(lambda: oracles.pick_greedily(lambda chosen: values, jnp.zeros(3), 3))()
    assert picked.tolist() == [2, 0, 3]
    after = oracles.pick_greedily(  # a chosen one's score may be NaN
        lambda chosen: jnp.where(chosen > 0, jnp.nan, jnp.arange(3.0)), jnp.zeros(3), 3
    )
    assert after.tolist() == [2, 1, 0]
