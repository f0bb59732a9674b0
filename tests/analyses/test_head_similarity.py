"""Heads are recognised through everything that does not change them, and matched."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.analyses import head_similarity
from lsa_lab.analyses.head_similarity import HeadMaps
from lsa_lab.models import constructions, transformer
from lsa_lab.tasks.linear import LinearTask, sample

D, H = 4, 4
PARAMS, CONFIG = constructions.preprocess_then_optimise(D, H, jnp.array([0.3]))
similarity = jax.jit(head_similarity.similarity)
ORDER = np.array([2, 0, 3, 1])


def disguised():
    """The same model: heads in another order, keys rotated, scales moved about, stream turned."""
    rng = np.random.default_rng(0)
    k, width = CONFIG.key_width, CONFIG.stream_width
    key_turn, turn = (np.linalg.qr(rng.normal(size=(m, m)))[0] for m in (k, width))
    shuffled = jax.tree.map(lambda w: w[:, ORDER], (PARAMS.w_q, PARAMS.w_k, PARAMS.w_v, PARAMS.w_o))
    w_q, w_k, w_v, w_o = (np.asarray(w) for w in shuffled)
    return PARAMS.replace(
        w_q=jnp.asarray(-2 * key_turn @ w_q @ turn.T),
        w_k=jnp.asarray(key_turn @ w_k @ turn.T),
        w_v=jnp.asarray(w_v @ turn.T),
        w_o=jnp.asarray(3 * turn @ w_o),
        read_in=jnp.asarray(turn) @ PARAMS.read_in,
        read_out=jnp.asarray(turn) @ PARAMS.read_out,
    )


def test_the_constructions_heads_are_found_again_in_any_order():
    own = head_similarity.first_layer_maps(PARAMS, CONFIG)
    assert own.key_query.shape == (H, D + 1, D + 1)
    assert own.written.shape == (H, CONFIG.stream_width, D + 1)
    found = similarity(head_similarity.first_layer_maps(disguised(), CONFIG), own)
    np.testing.assert_allclose(found, np.eye(H)[ORDER], atol=1e-10)
    first, second = head_similarity.match(found)
    np.testing.assert_array_equal(first, np.arange(H))
    np.testing.assert_array_equal(second, ORDER)


def test_similarity_to_the_construction_is_the_share_that_does_its_work():
    rng = np.random.default_rng(1)
    heads = HeadMaps(*(jnp.asarray(rng.normal(size=(3, m, D + 1))) for m in (D + 1, 7)))
    found = similarity(heads, head_similarity.first_layer_maps(PARAMS, CONFIG))
    asks = np.abs(np.asarray(heads.key_query)[:, np.arange(D), np.arange(D)])
    asks = asks / np.linalg.norm(heads.key_query, axis=(1, 2))[:, None]
    label = np.linalg.norm(heads.written[:, :, -1], axis=1) / np.linalg.norm(
        heads.written, axis=(1, 2)
    )
    np.testing.assert_allclose(found, asks * label[:, None], atol=1e-10)


def test_a_turn_of_what_is_written_changes_nothing_and_one_of_what_is_read_does():
    rng = np.random.default_rng(2)
    heads = HeadMaps(*(jnp.asarray(rng.normal(size=(2, m, 3))) for m in (3, 5)))
    turn = jnp.asarray(np.linalg.qr(rng.normal(size=(5, 5)))[0])
    found = similarity(heads, heads.replace(written=-2 * turn @ heads.written))
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-10)
    wider = heads.replace(written=jnp.pad(heads.written, ((0, 0), (0, 4), (0, 0))))
    np.testing.assert_allclose(np.diag(similarity(heads, wider)), 1, atol=1e-10)
    reads = heads.replace(written=heads.written @ turn[:3, :3])  # Control
    assert np.diag(similarity(heads, reads)).max() < 0.95
    assert not similarity(heads, jax.tree.map(jnp.zeros_like, heads)).any()


def test_attention_patterns_find_the_same_heads():
    keys = jax.random.split(jax.random.key(0), 16)
    batch = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(8, D))))(keys)

    @jax.jit
    def patterns(params):
        def one(prompt):
            trace = transformer.forward(params, prompts.tokens(prompt), CONFIG)
            return transformer.attention(params, trace, CONFIG)[0]

        return jax.vmap(one)(batch)

    other = disguised()
    found = head_similarity.attention_similarity(patterns(other), patterns(PARAMS))
    np.testing.assert_allclose(np.abs(found[np.arange(H), ORDER]), 1, atol=1e-10)
    assert (found[np.arange(H), ORDER] < 0).all()  # the disguise turned the scores' sign
    np.testing.assert_array_equal(head_similarity.match(np.abs(found))[1], ORDER)
    assert np.sort(np.abs(found), axis=1)[:, :-1].max() < 0.5


def test_what_cannot_be_compared_is_refused():
    config = dataclasses.replace(CONFIG, norm=True)
    with pytest.raises(ValueError, match="compare attention"):
        head_similarity.first_layer_maps(PARAMS, config)
    with pytest.raises(ValueError, match=r"similarity has shape \(2, 3\) and 5 finite"):
        head_similarity.match(np.array([[1.0, 0, 0], [0, 1, np.nan]]))
    with pytest.raises(AssertionError, match="same prompts"):
        head_similarity.attention_similarity(jnp.ones((2, 1, 3, 3)), jnp.ones((3, 1, 3, 3)))
    with pytest.raises(AssertionError, match="written is"):
        head_similarity.similarity(
            HeadMaps(jnp.ones((2, 3, 3)), jnp.ones((2, 5, 4))),
            HeadMaps(jnp.ones((2, 3, 3)), jnp.ones((2, 5, 3))),
        )
