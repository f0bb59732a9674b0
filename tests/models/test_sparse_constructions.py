"""The shape of preprocess-then-optimise, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.models import constructions, sparse_constructions, transformer
from lsa_lab.models.trace import layer_predictions

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


def test_head_counts_and_schedules_that_do_not_fit_are_refused():
    for num_heads, nearest in ((0, 1), (6, 5)):
        with pytest.raises(ValueError, match=f"num_heads = {num_heads} .*nearest {nearest}"):
            constructions.preprocess_then_optimise(5, num_heads, STEPS)
    with pytest.raises(AssertionError, match="raw_step_sizes: one for each"):
        constructions.preprocess_then_optimise(5, 5, STEPS, STEPS[:1])
