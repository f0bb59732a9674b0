"""Importance, pruning and its controls, fills; on losses with known answers and on a model."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.analyses import head_subsets, heads
from lsa_lab.models import constructions, transformer
from lsa_lab.models import trace as traces

L, H = 3, 4
WORTH = np.random.default_rng(0).uniform(0.1, 2.0, size=(L, H))
COUNTS = (4, 2, 1)


importance = jax.jit(heads.importance, static_argnums=(0, 1, 2))
first_order = jax.jit(heads.first_order, static_argnums=(0, 1, 2))


def additive(mask):
    """Each head saves its worth."""
    return 100 - jnp.sum(mask * WORTH)


def paired(mask):
    """Heads 0 and 1 of layer 0 save 3 together and nothing alone; head 2 saves 1."""
    return 5 - 3 * mask[0, 0] * mask[0, 1] - mask[0, 2]


def uneven():
    return np.where(np.arange(H)[None] < np.array(COUNTS)[:, None], WORTH, 0.0)


def test_importance_is_the_loss_that_each_head_saves():
    np.testing.assert_allclose(importance(additive, L, H), WORTH, atol=1e-10)
    raw = importance(paired, 1, H)
    np.testing.assert_allclose(raw, [[3, 3, 1, 0]], atol=1e-10)
    compiled = jax.jit(lambda scale: heads.importance(lambda m: scale * additive(m), L, H))
    np.testing.assert_allclose(compiled(2.0), 2 * WORTH, atol=1e-10)


def test_masks_are_judged_in_one_program_traced_at_most_twice():
    traced = []

    def loss(mask):
        traced.append(mask.shape)
        return jnp.sum(mask)

    heads.importance(loss, 5, 20)  # 101 masks, in two portions: one of 64, one of the rest
    assert len(traced) <= 2
    assert set(traced) == {(5, 20)}


def test_shares_and_effective_heads_of_a_layer():
    raw = jnp.array(
        [[1.0, 1.0, 1.0, 1.0], [3.0, 1.0, -9.0, 0.0], [0.0, 0.0, 5.0, 0.0], [-1, 0, 0, 0]]
    )
    shares = heads.normalised(raw)
    np.testing.assert_allclose(shares[1], [0.75, 0.25, 0, 0])
    np.testing.assert_allclose(shares.sum(1), [1, 1, 1, 0])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    np.testing.assert_allclose(heads.effective_heads(raw), [4, math.exp(entropy), 1, 0], atol=1e-12)
    np.testing.assert_allclose(heads.effective_heads(shares), heads.effective_heads(raw))


def test_pruning_keeps_the_first_layer_and_the_top_of_each_later():
    expected = np.zeros((L, H))
    expected[0] = 1
    expected[1, WORTH[1].argmax()] = expected[2, WORTH[2].argmax()] = 1
    np.testing.assert_array_equal(heads.prune(jnp.asarray(WORTH)), expected)
    reverse = np.ones((L, H))
    reverse[0] = np.arange(H) == WORTH[0].argmax()
    np.testing.assert_array_equal(heads.prune_first_layer(jnp.asarray(WORTH)), reverse)


def test_heads_that_are_absent_or_harmful_are_no_exception():
    raw = jnp.asarray(uneven()).at[1].set(jnp.array([-2.0, -1.0, 0.0, 0.0]))
    expected = [[1, 1, 1, 1], [0, 1, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_array_equal(heads.prune(raw, COUNTS), expected)
    np.testing.assert_array_equal(
        heads.prune_first_layer(raw, COUNTS)[1:], [[1, 1, 0, 0], expected[2]]
    )


def test_the_random_controls_keep_as_many_heads_and_spread_over_all():
    raw, keys = uneven(), jax.random.split(jax.random.key(0), 400)
    top = np.asarray(heads.prune(jnp.asarray(WORTH)))
    many = jax.jit(jax.vmap(lambda key: heads.prune_to_random_heads(key, jnp.asarray(WORTH))))
    other = np.asarray(many(keys))
    assert (other[:, 0] == 1).all()
    assert (other.sum(2)[:, 1:] == 1).all()
    assert not (other[:, 1:] * top[None, 1:]).any()  # a head in place of the top one
    assert np.ptp(other.mean(0)[1][top[1] == 0]) < 0.15
    kept = jax.jit(lambda key: heads.prune_to_random_heads(key, jnp.asarray(raw), COUNTS))
    kept = np.asarray(kept(keys[0]))
    assert kept[:2].sum(1).tolist() == [COUNTS[0], 1]
    assert kept[1, :2].sum() == 1
    assert kept[1, raw[1].argmax()] == 0
    assert kept[2, 0] == 1  # the only one
    removed = jax.vmap(lambda key: heads.remove_at_random(key, jnp.asarray(raw), COUNTS))
    removed = np.asarray(jax.jit(removed)(keys))
    assert (removed.sum((1, 2)) == np.asarray(heads.prune(jnp.asarray(raw), COUNTS)).sum()).all()
    assert not removed[:, raw == 0].any()
    assert np.ptp(removed.mean(0)[raw > 0]) < 0.15


def test_every_subset_and_the_values_of_heads_among_them():
    rows = head_subsets.subsets(3)
    found = heads.losses(paired, jnp.ones((8, 2, 3)).at[:, 0].set(rows))
    masks = np.array(list(itertools.product([0, 1], repeat=3)))[:, ::-1]
    np.testing.assert_array_equal(head_subsets.subsets(3), masks)
    np.testing.assert_allclose(found, [5 - 3 * a * b - c for a, b, c in masks])
    values = head_subsets.shapley(found)
    np.testing.assert_allclose(values, [1.5, 1.5, 1.0], atol=1e-12)
    best = head_subsets.best_subsets(found)
    np.testing.assert_array_equal(found[best], [5, 4, 2, 1])
    np.testing.assert_array_equal(head_subsets.subsets(3)[best].sum(1), [0, 1, 2, 3])


def test_shapley_values_average_over_the_orders_of_joining():
    losses = np.random.default_rng(1).normal(size=16)
    stated = np.zeros(4)
    for order in itertools.permutations(range(4)):
        row = 0
        for head in order:
            stated[head] += (losses[row] - losses[row | 1 << head]) / 24
            row |= 1 << head
    values = head_subsets.shapley(jnp.asarray(losses))
    np.testing.assert_allclose(values, stated, atol=1e-12)
    np.testing.assert_allclose(values.sum(), losses[0] - losses[-1], atol=1e-12)


def test_greedy_pruning_goes_from_the_least_to_the_most_worth():
    run = head_subsets.greedy(additive, L, H)
    order = np.argsort(WORTH.ravel())
    np.testing.assert_array_equal(run.layers * H + run.heads, order[:-1])
    np.testing.assert_allclose(
        run.losses, 100 - WORTH.sum() + np.cumsum(np.append(0, np.sort(WORTH.ravel())[:-1]))
    )
    run = head_subsets.greedy(additive, L, H, COUNTS)
    assert len(run.heads) == sum(COUNTS) - 1
    assert (run.heads < np.array(COUNTS)[run.layers]).all()


def test_greedy_pruning_puts_off_what_explodes():
    run = head_subsets.greedy(lambda m: jnp.where(m[0, 0] > 0, additive(m), jnp.nan), L, H)
    assert (run.layers * H + run.heads > 0).all()
    assert np.isfinite(run.losses).all()


@functools.cache
def model():
    """The construction with a head for each of four coordinates, and prompts on them."""
    build = jit_numpy(constructions.preprocess_then_optimise, static_argnums=(0, 1))
    params, config = build(4, 4, np.array([0.5, 0.5]))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(200, 17, 4)), rng.normal(size=(200, 1, 4)) / 2
    tokens, targets = np.concatenate([x, (x * w).sum(2, keepdims=True)], 2), (x * w).sum(2)[:, -1]
    tokens[:, -1, -1] = 0
    return params, config, tokens, targets


@functools.partial(jax.jit, static_argnames="shared")
def ablated(mask, fill=None, shared=False):
    """Traces, a closed head filled by ``fill``: one for all prompts, or each its own."""
    params, config, tokens, _ = model()

    def one(tokens, fill):
        return transformer.forward(params, tokens, config, mask, fill)

    return jax.vmap(one, in_axes=(0, None if shared else 0))(tokens, fill)


def test_a_filled_head_writes_its_mean_or_what_it_wrote_on_another_prompt():
    model()  # before ablated asks for it within a compilation
    whole, mask = jax.device_get(ablated(np.ones((3, 4)))), np.ones((3, 4))
    mask[0, 1] = 0
    mean = jax.device_get(ablated(mask, jit_numpy(heads.mean_fill)(whole.heads), shared=True))
    np.testing.assert_allclose(
        mean.heads[:, 0, 1], np.broadcast_to(whole.heads[:, 0, 1].mean(0), (200, 17, 9))
    )
    other = jax.device_get(ablated(mask, jit_numpy(heads.resampled_fill)(whole.heads)))
    np.testing.assert_allclose(other.heads[1:, 0, 1], whole.heads[:-1, 0, 1], atol=1e-12)
    for found in (mean, other):
        np.testing.assert_allclose(found.heads[:, 0, 0], whole.heads[:, 0, 0], atol=1e-12)
        moved = found.stream[:, 1] - found.stream[:, 0]
        np.testing.assert_allclose(moved, found.heads[:, 0].sum(1), atol=1e-12)
    # Filled with its own writes, a head is not missed.
    same = jax.device_get(ablated(np.zeros((3, 4)), whole.heads))
    np.testing.assert_allclose(same.stream, whole.stream, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: heads.losses(additive, jnp.zeros((2, L, H))), "head_mask 0 of 2 is all zero"),
        (lambda: heads.prune(jnp.ones((3, 4)), (4, 1)), "pass the head_counts of the config"),
        (lambda: heads.prune(jnp.ones((3, 4)), (3, 1, 1)), "pass the head_counts of the config"),
        (lambda: heads.prune(jnp.ones((3, 4)), (4, 0, 1)), "pass the head_counts of the config"),
        (lambda: heads.prune(jnp.full((3, 4), jnp.inf)), r"12 NaN or infinite.*\(0, 0\)"),
        (lambda: heads.effective_heads(jnp.array([[1.0, jnp.nan]])), r"1 NaN.*\(0, 1\)"),
        (lambda: head_subsets.subsets(15), "32768 subsets: choose 1 to 14"),
        (lambda: head_subsets.shapley(jnp.array([1.0, jnp.inf])), "explodes"),
        (lambda: head_subsets.greedy(additive, L, H, (4, 1)), "it has 3 entries, from 1 to 4"),
    ],
)
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_first_order_estimate_is_exact_where_the_loss_is_linear_in_the_gates():
    linear = np.asarray(first_order(additive, L, H))
    np.testing.assert_allclose(linear, importance(additive, L, H), atol=1e-10)
    # Signed: a head that does harm has a negative estimate.
    harmful = first_order(lambda mask: additive(mask) + 5 * mask[0, 1], L, H)
    np.testing.assert_allclose(harmful - linear, np.eye(1, L * H, 1).reshape(L, H) * -5, atol=1e-12)
    # Control: where heads work together it is another number.
    curved = first_order(lambda mask: paired(mask) ** 2, 1, H)
    exact = importance(lambda mask: paired(mask) ** 2, 1, H)
    np.testing.assert_allclose(curved, [[6, 6, 2, 0]], atol=1e-10)  # 2 loss Δ, loss = 1
    np.testing.assert_allclose(exact, [[15, 15, 3, 0]], atol=1e-10)


def test_the_first_order_estimate_is_the_slope_of_a_models_risk():
    _, config, _, targets = model()

    def loss(mask):
        predictions = jax.vmap(traces.predict)(ablated(mask))
        return jnp.mean(jnp.tanh(predictions - targets) ** 2)

    found = np.asarray(first_order(loss, config.num_layers, config.num_heads))
    small, run = 1e-6, jax.jit(loss)
    for layer, head in ((0, 2), (2, 0)):
        shut = np.ones((3, 4))
        shut[layer, head] -= small
        slope = (run(shut) - run(np.ones((3, 4)))) / small
        np.testing.assert_allclose(found[layer, head], slope, rtol=1e-3, atol=1e-7)
    assert not found[1:, 1:].any()  # absent


def test_a_mean_over_prompts_of_several_lengths_counts_no_padding():
    writes, lengths = np.random.default_rng(3).normal(size=(3, 1, 2, 4, 5)), np.array([2, 3, 2])
    mean_fill = jax.jit(heads.mean_fill)
    fill = np.asarray(mean_fill(writes, lengths))
    np.testing.assert_allclose(fill[:, :, :2], writes[..., :2, :].mean(0), atol=1e-12)
    np.testing.assert_allclose(fill[:, :, 2], writes[1, :, :, 2], atol=1e-12)
    assert not fill[:, :, 3].any()
    plain = np.asarray(mean_fill(writes))
    assert abs(plain[:, :, 2] - fill[:, :, 2]).max() > 0.1  # control
    np.testing.assert_allclose(mean_fill(writes, np.full(3, 4)), plain, atol=1e-12)
    np.testing.assert_array_equal(
        heads.resampled_fill(writes, np.full(3, 4)), heads.resampled_fill(writes)
    )
    with pytest.raises(ValueError, match="lengths 2 to 3, and a place of one is padding of ano"):
        heads.resampled_fill(writes, lengths)
    with pytest.raises(AssertionError, match="one for each prompt"):
        heads.mean_fill(writes, lengths[:2])
    with pytest.raises(ValueError, match="lengths of prompts of 4 tokens are whole, 0 to 4"):
        heads.mean_fill(writes, lengths + 2)
