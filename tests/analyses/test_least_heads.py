"""What the search for fewer heads refuses; its bounds are a theorem."""

import jax
import pytest

from lsa_lab.analyses import least_heads
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
    more, errors = least_heads.refitted(KEY, params, 3, restarts=1, sweeps=50)
    assert more.w_kq.shape == (1, 3, 3, 3)
    assert errors.max() < 1e-4


def test_without_restarts_it_begins_at_the_layers_own_heads():
    params = linear_attention.init(KEY, 1, 2, 2)
    assert least_heads.refitted(KEY, params, 2, restarts=0, sweeps=1)[1].max() < 1e-10


def test_several_models_need_a_vmap():
    params = jax.tree.map(lambda leaf: leaf[None], linear_attention.init(KEY, 1, 2, 2))
    with pytest.raises(AssertionError, match=r"\[L, H, e, e\]; use jax.vmap"):
        least_heads.least_error(KEY, params, 1)
