"""The shape of preprocess-then-optimise, and single precision."""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models import constructions, linear_attention, sparse_constructions, transformer
from lsa_lab.models.trace import layer_predictions


def test_skipping_keeps_single_precision():
    params = linear_attention.init(jax.random.key(0), 3, 1, 2, 0.1, dtype=jnp.float32)
    assert constructions.scale_skip(params, 0.5).w_pv.dtype == jnp.float32


STEPS = jnp.array([0.3, 0.2], jnp.float32)


def test_neighbours_share_a_head_evenly_and_single_precision_stays():
    params, config = constructions.preprocess_then_optimise(5, 3, STEPS)
    assert config.head_counts == (3, 1, 1)
    groups = sparse_constructions.coordinate_groups(5, 3)
    np.testing.assert_array_equal(np.asarray(params.w_k[0, :, :, :5]).sum(1), groups)
    np.testing.assert_array_equal(groups.sum(0), 1)
    assert np.ptp(groups.sum(1)) <= 1
    assert (np.diff(groups.argmax(0)) >= 0).all()  # neighbours
    trace = jax.jit(transformer.forward)(params, jnp.ones((4, 6), jnp.float32), config)
    assert layer_predictions(trace).dtype == jnp.float32
