"""What the closed forms of one layer refuse."""

import jax.numpy as jnp
import pytest

from lsa_lab.theory import optimum


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="n = 0: it is at least 1"):
        optimum.one_layer(jnp.eye(2), jnp.eye(2), 0, 0.1)
    with pytest.raises(ValueError, match="finite and not negative"):
        optimum.one_layer_risk(jnp.eye(2), jnp.eye(2), jnp.eye(2), 3, -0.1)
    with pytest.raises(AssertionError, match=r"task_covariance is \[d, d\]"):
        optimum.rank_limited_risk(jnp.eye(2), jnp.eye(3), 3, 0.1)
