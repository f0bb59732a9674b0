"""Heads that are narrow, that are fewer, and those of a decoder."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import heads, least_heads, narrow_heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config
from lsa_lab.models import linear_attention

KEY = jax.random.key(0)


def test_a_layer_keeps_a_head():
    params = linear_attention.init(KEY, 1, 2, 2)
    with pytest.raises(ValueError, match="num_heads = 0: it is at least 1"):
        least_heads.refitted(KEY, params, 0)
    with pytest.raises(ValueError, match="samples = 0"):
        least_heads.least_error(KEY, params, 1, samples=0)


def test_more_heads_than_before_are_allowed():
    params = linear_attention.init(KEY, 1, 1, 2)
    fit = jit_numpy(partial(least_heads.refitted, restarts=1, sweeps=50), static_argnums=2)
    more, errors = fit(KEY, params, 3)
    assert more.w_kq.shape == (1, 3, 3, 3)
    assert errors.max() < 1e-4


def test_without_restarts_it_begins_at_the_layers_own_heads():
    params = linear_attention.init(KEY, 1, 2, 2)
    fit = jit_numpy(partial(least_heads.refitted, restarts=0, sweeps=1), static_argnums=2)
    assert fit(KEY, params, 2)[1].max() < 1e-10


def test_several_models_need_a_vmap():
    params = jax.tree.map(lambda leaf: leaf[None], linear_attention.init(KEY, 1, 2, 2))
    with pytest.raises(AssertionError, match=r"\[L, H, e, e\]; use jax.vmap"):
        least_heads.least_error(KEY, params, 1)


def test_a_layer_of_zeros_misses_nothing():
    zeros = jax.tree.map(jnp.zeros_like, linear_attention.init(KEY, 1, 2, 2))
    assert least_heads.least_error(KEY, zeros, 1) == 0
    fit = jit_numpy(partial(least_heads.refitted, restarts=1, sweeps=2), static_argnums=2)
    assert fit(KEY, zeros, 1)[1] == 0


def test_heads_of_another_rank_than_the_width_are_refused():
    heads = low_rank(0, (3, 4, 4), 2)
    narrow_heads.condition_number(jnp.asarray(heads), jnp.asarray(heads[:, :, ::-1]), 2)
    for wrong, width in ((heads, 1), (heads, 3), (0 * heads, 2)):
        with pytest.raises(ValueError, match="w_pv of head 0 has rank"):
            narrow_heads.condition_number(jnp.asarray(wrong), jnp.asarray(heads), width)


condition_of = jax.jit(narrow_heads.condition_number, static_argnums=2)


def low_rank(seed, shape, rank):  # [H, a, b]
    left, right = np.random.default_rng(seed).normal(size=(2, *shape))
    return left[:, :, :rank] @ right[:, :rank]


def test_one_head_is_its_own_layer():
    one = low_rank(0, (1, 4, 4), 2), low_rank(1, (1, 4, 4), 2)
    assert condition_of(*one, 2) == pytest.approx(1)


def test_it_is_the_same_for_all_ways_to_write_the_heads():
    w_pv, w_kq = (
        low_rank(0, (3, 2, 5), 2),
        low_rank(1, (3, 5, 4), 2),
    )  # slots that are read, and filled
    scales = np.array([1.0, -3.0, 0.2])[:, None, None]
    value = condition_of(w_pv, w_kq, 2)
    other = condition_of((w_pv * scales)[::-1], (w_kq / scales)[::-1], 2)
    np.testing.assert_allclose(other, value, rtol=1e-8)
    for unit in (1e-6, 1e6):
        same = condition_of(w_pv * unit, w_kq * unit, 2)
        np.testing.assert_allclose(same, value, rtol=1e-8)


def test_a_rotation_of_the_slots_between_read_and_write_does_not_change_it():
    w_pv, w_kq = low_rank(0, (3, 2, 5), 2), low_rank(1, (3, 5, 4), 2)
    value = condition_of(w_pv, w_kq, 2)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    turned = condition_of(w_pv @ turn, turn.T @ w_kq, 2)
    np.testing.assert_allclose(turned, value, rtol=1e-8)
    sheared = turn @ np.diag(np.arange(1.0, 6.0))  # Control
    changed = condition_of(w_pv @ sheared, np.linalg.inv(sheared) @ w_kq, 2)
    assert abs(changed / value - 1) > 1e-3


def test_more_heads_than_the_tensor_has_numbers_can_move():
    many = low_rank(0, (9, 2, 2), 1), low_rank(1, (9, 2, 2), 1)
    assert condition_of(*many, 1) == np.inf


def test_a_stack_is_refused():
    stack = low_rank(0, (1, 4, 4), 2)[None]
    with pytest.raises(AssertionError, match=r"one layer: w_pv \[H, a, b\]"):
        condition_of(stack, stack, 2)


CONFIG = Config(2, 4, 2, 2, 8, 10, 13, 16, rotary_width=2)
PARAMS = jit_numpy(weights.init, static_argnums=1)(jax.random.key(0), CONFIG)
IDS = jnp.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 0], [8, 9, 7, 0, 0]])
LAST = jnp.array([4, 3, 2])  # padded on the right


@jit_numpy
def scores(params, head_mask=None):  # [B, V]
    def of_prompt(ids, last):
        walk = decoder.forward(params, decoder.embed(params, ids, CONFIG), CONFIG, head_mask)
        return decoder.logits(params, walk.stream[-1, last], CONFIG)

    return jax.vmap(of_prompt)(IDS, LAST)


def test_closing_a_gate_is_cutting_what_the_head_writes():
    mask = np.array([[0.5, 1, 1, 1], [1, 1, 0, 1]])
    cut = heads.masked(PARAMS, "w_o", mask)
    np.testing.assert_allclose(scores(cut), scores(PARAMS, mask), atol=1e-12)
    assert abs(scores(PARAMS) - scores(PARAMS, mask)).max() > 1e-3
