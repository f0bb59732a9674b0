"""Importance, pruning and its controls, on losses with known answers and on a model."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from draws import jit_numpy
from lsa_lab.analyses import heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.config import Config

L, H = 3, 4
WORTH = np.random.default_rng(0).uniform(0.1, 2.0, size=(L, H))
TOP = WORTH.max(1, keepdims=True) == WORTH
COUNTS = (4, 2, 1)
UNEVEN = np.where(np.arange(H)[None] < np.array(COUNTS)[:, None], WORTH, 0.0)
importance = jit_numpy(heads.importance, static_argnums=(0, 1, 2))
first_order = jit_numpy(heads.first_order, static_argnums=(0, 1, 2))
effective_heads = jit_numpy(heads.effective_heads)


def additive(mask):
    """Each head saves its worth."""
    return 100 - jnp.sum(mask * WORTH)


def paired(mask):
    """Heads 0 and 1 of layer 0 save 3 together and nothing alone; head 2 saves 1."""
    return 5 - 3 * mask[0, 0] * mask[0, 1] - mask[0, 2]


def test_importance_is_the_loss_that_each_head_saves():
    np.testing.assert_allclose(importance(additive, L, H), WORTH, atol=1e-10)
    np.testing.assert_allclose(importance(paired, 1, H), [[3, 3, 1, 0]], atol=1e-10)
    compiled = jax.jit(lambda scale: heads.importance(lambda m: scale * additive(m), L, H))
    np.testing.assert_allclose(compiled(2.0), 2 * WORTH, atol=1e-10)


def test_the_shares_and_the_effective_heads_of_a_layer():
    raw = np.array([[1.0, 1, 1, 1], [3, 1, -9, 0], [0, 0, 5, 0], [-1, 0, 0, 0]])
    shares = jit_numpy(heads.normalised)(raw)
    np.testing.assert_allclose(shares[1], [0.75, 0.25, 0, 0])
    np.testing.assert_allclose(shares.sum(1), [1, 1, 1, 0])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    for values in (raw, shares):
        np.testing.assert_allclose(effective_heads(values), [4, math.exp(entropy), 1, 0], 1e-12)


def test_pruning_keeps_the_first_layer_and_the_top_of_each_later_be_heads_absent_or_harmful():
    pruned, reverse = heads.prune(WORTH), heads.prune_first_layer(WORTH)
    np.testing.assert_array_equal(pruned, [[1] * H, *TOP[1:]])
    np.testing.assert_array_equal(reverse, [TOP[0], [1] * H, [1] * H])
    raw = UNEVEN.copy()
    raw[1] = [-2.0, -1.0, 0.0, 0.0]
    pruned, reverse = heads.prune(raw, COUNTS), heads.prune_first_layer(raw, COUNTS)
    np.testing.assert_array_equal(pruned, [[1, 1, 1, 1], [0, 1, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(reverse[1:], [[1, 1, 0, 0], [1, 0, 0, 0]])


def draw_masks(control, raw, counts):
    keys = jax.random.split(jax.random.key(0), 400)
    return jit_numpy(jax.vmap(lambda key: control(key, raw, counts)))(keys)


def test_random_heads_replace_the_top_ones_of_later_layers():
    masks = draw_masks(heads.prune_to_random_heads, WORTH, None)
    assert (masks[:, 0] == 1).all()
    assert (masks.sum(2)[:, 1:] == 1).all()
    assert not (masks[:, 1:] * TOP[None, 1:]).any()
    assert np.ptp(masks.mean(0)[1][~TOP[1]]) < 0.15
    masks = draw_masks(heads.prune_to_random_heads, UNEVEN, COUNTS)
    other = 1 - UNEVEN[1, :2].argmax()
    np.testing.assert_array_equal(masks[:, 1], np.broadcast_to(np.arange(H) == other, (400, H)))
    assert (masks[:, 2] == [1, 0, 0, 0]).all()  # the only one


def test_removal_at_random_keeps_as_many_heads_and_spreads_over_all():
    masks = draw_masks(heads.remove_at_random, UNEVEN, COUNTS)
    assert (masks.sum((1, 2)) == COUNTS[0] + L - 1).all()
    assert not masks[:, UNEVEN == 0].any()
    assert np.ptp(masks.mean(0)[UNEVEN > 0]) < 0.15


def test_the_first_order_estimate_is_exact_where_the_loss_is_linear_in_the_gates():
    harm = 5 * np.eye(1, L * H, 1).reshape(L, H)
    found = first_order(lambda mask: additive(mask) + jnp.sum(mask * harm), L, H)
    np.testing.assert_allclose(found, WORTH - harm, atol=1e-10)  # signed
    # Control: where heads work together it is another number.
    curved = first_order(lambda mask: paired(mask) ** 2, 1, H)
    exact = importance(lambda mask: paired(mask) ** 2, 1, H)
    np.testing.assert_allclose(curved, [[6, 6, 2, 0]], atol=1e-10)  # 2 loss Δ, loss = 1
    np.testing.assert_allclose(exact, [[15, 15, 3, 0]], atol=1e-10)


CONFIG = Config(2, 4, 2, 2, 8, 10, 13, 16, rotary_width=2)


@jit_numpy
def run_decoder(params, head_mask=None):  # [T, D]
    stream = decoder.embed(params, jnp.array([3, 1, 4, 1, 5]), CONFIG)
    return decoder.forward(params, stream, CONFIG, head_mask).stream[-1]


def test_masked_weights_are_masked_heads():
    params = jit_numpy(weights.init, static_argnums=1)(jax.random.key(0), CONFIG)
    mask = np.array([[0.5, 1, 1, 1], [1, 1, 0, 1]])
    expected = run_decoder(params, mask)
    masked = heads.mask_heads(params, "w_o", mask)
    np.testing.assert_allclose(run_decoder(masked), expected, atol=1e-12)
    assert abs(run_decoder(params) - expected).max() > 1e-3
