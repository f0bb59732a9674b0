"""What the condition number of narrow heads is; that it tells who can move is a theorem."""

import jax
import numpy as np
import pytest

from lsa_lab.analyses import narrow_heads

condition_number = jax.jit(narrow_heads.condition_number, static_argnums=2)


def heads(seed, shape, rank):  # [H, a, b]
    left, right = np.random.default_rng(seed).normal(size=(2, *shape))
    return left[:, :, :rank] @ right[:, :rank]


def test_one_head_is_its_own_layer():
    one = heads(0, (1, 4, 4), 2), heads(1, (1, 4, 4), 2)
    assert condition_number(*one, 2) == pytest.approx(1)


def test_it_is_the_same_for_all_ways_to_write_the_heads():
    w_pv, w_kq = heads(0, (3, 2, 5), 2), heads(1, (3, 5, 4), 2)  # slots that are read, and filled
    scales = np.array([1.0, -3.0, 0.2])[:, None, None]
    value = condition_number(w_pv, w_kq, 2)
    other = condition_number((w_pv * scales)[::-1], (w_kq / scales)[::-1], 2)
    np.testing.assert_allclose(other, value, rtol=1e-8)
    for unit in (1e-6, 1e6):
        same = condition_number(w_pv * unit, w_kq * unit, 2)
        np.testing.assert_allclose(same, value, rtol=1e-8)


def test_a_rotation_of_the_slots_between_read_and_write_does_not_change_it():
    w_pv, w_kq = heads(0, (3, 2, 5), 2), heads(1, (3, 5, 4), 2)
    value = condition_number(w_pv, w_kq, 2)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    turned = condition_number(w_pv @ turn, turn.T @ w_kq, 2)
    np.testing.assert_allclose(turned, value, rtol=1e-8)
    sheared = turn @ np.diag(np.arange(1.0, 6.0))  # Control
    changed = condition_number(w_pv @ sheared, np.linalg.inv(sheared) @ w_kq, 2)
    assert abs(changed / value - 1) > 1e-3


def test_more_heads_than_the_tensor_has_numbers_can_move():
    many = heads(0, (9, 2, 2), 1), heads(1, (9, 2, 2), 1)
    assert condition_number(*many, 1) == np.inf


def test_a_stack_is_refused():
    stack = heads(0, (1, 4, 4), 2)[None]
    with pytest.raises(AssertionError, match=r"one layer: w_pv \[H, a, b\]"):
        condition_number(stack, stack, 2)
