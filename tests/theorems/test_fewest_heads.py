"""No layer of H heads comes nearer to a layer than the updates by single demonstrations allow.

M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most (derived here; docs/theory, "The fewest heads").
Sides: the bound by singular values of M_uu; layers of H heads, searched and at random.
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.analyses import least_heads
from lsa_lab.models import head_gauge, linear_attention

E, H = 4, 3
KEY = jax.random.key(0)
least_error = jit_numpy(partial(least_heads.least_error, samples=200), static_argnums=2)
refitted = jit_numpy(
    partial(least_heads.refitted, restarts=4, sweeps=200), static_argnames="num_heads"
)
mixed, canonical, layer_tensor = map(
    jit_numpy, (head_gauge.mixed, head_gauge.canonical, head_gauge.layer_tensor)
)


def layers(seed):
    return linear_attention.Params(*np.random.default_rng(seed).normal(size=(2, 2, H, E, E)))


def distance(params, other):  # [L]
    tensor, others = (layer_tensor(each).reshape(2, -1) for each in (params, other))
    return np.linalg.norm(tensor - others, axis=1) / np.linalg.norm(tensor, axis=1)


@pytest.mark.parametrize("num_heads", [1, 2])
@seeds
def test_no_layer_of_fewer_heads_is_nearer(num_heads, seed):
    params = layers(seed)
    least = least_error(KEY, params, num_heads)
    assert (least > 0.05).all()
    fewer = jax.tree.map(lambda leaf: leaf[:, :num_heads], params)
    near, errors = refitted(KEY, params, num_heads=num_heads)
    np.testing.assert_allclose(errors, distance(params, near), rtol=1e-8)
    assert (least <= errors).all()
    assert (errors <= distance(params, fewer) + 1e-9).all()


@seeds
def test_as_many_heads_as_it_has_are_enough(seed):
    params = layers(seed)
    assert least_error(KEY, params, H).max() < 1e-12
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(2, H, H)))[0]
    near, errors = refitted(KEY, mixed(params, turned), num_heads=H)
    assert errors.max() < 1e-9
    assert distance(params, near).max() < 1e-9


@seeds
def test_one_head_written_as_many_is_found_again(seed):
    one_head = jax.tree.map(lambda leaf: leaf[:, :1], layers(seed))
    many, values = canonical(one_head)
    assert (values > 1e-6 * values.max()).sum(1).min() > 1
    assert least_error(KEY, many, 1).max() < 1e-10
    assert refitted(KEY, many, num_heads=1)[1].max() < 1e-8


def test_control_the_spectrum_of_the_heads_is_no_bound():
    one_head = jax.tree.map(lambda leaf: leaf[:, :1], layers(0))
    many, values = canonical(one_head)
    claimed = np.linalg.norm(values[:, 1:], axis=1) / np.linalg.norm(values, axis=1)
    assert (claimed > 0.1 + refitted(KEY, many, num_heads=1)[1]).all()
