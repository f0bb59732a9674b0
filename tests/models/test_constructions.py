"""What constructions refuse, and the precision that they keep."""

import jax
import jax.numpy as jnp
import pytest

from lsa_lab.models import constructions, linear_attention, transformer

SHAPE = {"token_width": 3, "num_layers": 2, "heads": 1, "key_width": 2}


@pytest.mark.parametrize("extras", [{"norm": True}, {"mlp_width": 4}])
def test_a_norm_or_an_mlp_is_not_skipped(extras):
    params = transformer.init(jax.random.key(0), transformer.Config(**SHAPE, **extras))
    with pytest.raises(ValueError, match="not homogeneous"):
        constructions.skipped(params, 0.5)


def test_skipping_keeps_single_precision_and_refuses_the_weight_zero():
    params = linear_attention.init(jax.random.key(0), 3, 1, 2, 0.1, dtype=jnp.float32)
    assert constructions.skipped(params, 0.5).w_pv.dtype == jnp.float32
    with pytest.raises(ValueError, match="weight is 0"):
        constructions.skipped(params, 0.0)
