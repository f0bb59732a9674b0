"""What mixing heads refuses; that it changes nothing is a theorem."""

import jax
import jax.numpy as jnp
import pytest

from lsa_lab.models import head_gauge, linear_attention


def test_a_mixing_of_another_shape_is_refused():
    params = linear_attention.init(jax.random.key(0), 2, 3, 2)
    with pytest.raises(AssertionError, match=r"mixing is \[L, H, H\]"):
        head_gauge.mixed(params, jnp.eye(3)[None])
