"""No layer of H heads comes nearer to a layer than the updates by single demonstrations allow.

M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most; derived here. docs/theory, "The fewest heads".
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import draw_stack, jit_numpy, seeds
from lsa_lab.analyses import least_heads
from lsa_lab.models import head_gauge

E, H = 4, 3
KEY = jax.random.key(0)
least_error = jit_numpy(partial(least_heads.least_error, samples=200), static_argnums=2)
refit = jit_numpy(
    partial(least_heads.refitted, restarts=4, sweeps=200), static_argnames="num_heads"
)
mix, canonical, layer_tensor = map(
    jit_numpy, (head_gauge.mixed, head_gauge.canonical, head_gauge.layer_tensor)
)


def draw(seed, num_heads=H):
    return jax.tree.map(
        lambda leaf: leaf[:, :num_heads], draw_stack(np.random.default_rng(seed), 2, H, E, 1.0)
    )


def distance(params, other):  # [L]
    tensor, others = (layer_tensor(each).reshape(2, -1) for each in (params, other))
    return np.linalg.norm(tensor - others, axis=1) / np.linalg.norm(tensor, axis=1)


@pytest.mark.parametrize("num_heads", [1, 2])
@seeds
def test_no_layer_of_fewer_heads_is_nearer(num_heads, seed):
    params, fewer = draw(seed), draw(seed, num_heads)
    least = least_error(KEY, params, num_heads)
    assert (least > 0.05).all()
    near, errors = refit(KEY, params, num_heads=num_heads)
    np.testing.assert_allclose(errors, distance(params, near), rtol=1e-8)
    assert (least <= errors).all()
    assert (errors <= distance(params, fewer) + 1e-9).all()


@seeds
def test_as_many_heads_as_it_has_are_enough(seed):
    params = draw(seed)
    assert least_error(KEY, params, H).max() < 1e-12
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(2, H, H)))[0]
    near, errors = refit(KEY, mix(params, turned), num_heads=H)
    assert max(errors.max(), distance(params, near).max()) < 1e-9


@seeds
def test_one_head_written_as_many_is_found_again(seed):
    many, values = canonical(draw(seed, 1))
    assert (values > 1e-6 * values.max()).sum(1).min() > 1
    assert least_error(KEY, many, 1).max() < 1e-10
    assert refit(KEY, many, num_heads=1)[1].max() < 1e-8


def test_control_the_spectrum_of_the_heads_is_no_bound():
    many, values = canonical(draw(0, 1))
    claimed = np.linalg.norm(values[:, 1:], axis=1) / np.linalg.norm(values, axis=1)
    assert (claimed > 0.1 + refit(KEY, many, num_heads=1)[1]).all()
