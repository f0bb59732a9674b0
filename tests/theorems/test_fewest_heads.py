"""No layer of H heads comes nearer to a layer than the updates by single demonstrations allow.

M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most (derived here; docs/theory, "The fewest heads").
Sides: the bound by singular values of M_uu; layers of H heads, searched and at random.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import seeds
from lsa_lab.analyses import least_heads
from lsa_lab.models import head_gauge, linear_attention

E, H = 4, 3
KEY = jax.random.key(0)
least_error = jax.jit(partial(least_heads.least_error, samples=200), static_argnums=2)
refitted = jax.jit(
    partial(least_heads.refitted, restarts=4, sweeps=200), static_argnames="num_heads"
)


@jax.jit
def layers(seed):
    return linear_attention.init(jax.random.key(seed), 2, H, E - 1, scale=1.0)


def distance(params, other):  # [L]
    tensor, others = head_gauge.layer_tensor(params), head_gauge.layer_tensor(other)
    return jnp.sqrt(
        jnp.sum((tensor - others) ** 2, (1, 2, 3, 4)) / jnp.sum(tensor**2, (1, 2, 3, 4))
    )


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
    turned = jnp.broadcast_to(jnp.linalg.qr(jax.random.normal(KEY, (H, H)))[0], (2, H, H))
    near, errors = refitted(KEY, head_gauge.mixed(params, turned), num_heads=H)
    assert errors.max() < 1e-9
    assert distance(params, near).max() < 1e-9


@seeds
def test_one_head_written_as_many_is_found_again(seed):
    one_head = jax.tree.map(lambda leaf: leaf[:, :1], layers(seed))
    many, values = jax.jit(head_gauge.canonical)(one_head)
    assert (values > 1e-6 * values.max()).sum(1).min() > 1
    assert least_error(KEY, many, 1).max() < 1e-10
    assert refitted(KEY, many, num_heads=1)[1].max() < 1e-8


def test_control_the_spectrum_of_the_heads_is_no_bound():
    one_head = jax.tree.map(lambda leaf: leaf[:, :1], layers(0))
    values = jax.jit(head_gauge.canonical)(one_head)[1]
    claimed = jnp.sqrt(jnp.sum(values[:, 1:] ** 2, 1) / jnp.sum(values**2, 1))
    assert (claimed > 0.1 + refitted(KEY, one_head, num_heads=1)[1]).all()
