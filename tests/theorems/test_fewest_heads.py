"""No layer of H heads comes nearer to a layer than the updates by single demonstrations allow.

M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most; derived here. docs/theory, "The fewest heads".
"""

import jax
import numpy as np
import pytest

import head_gauge
from draws import draw_stack, jit_numpy, seeds
from head_gauge import canonical_heads, mix_heads
from lsa_lab.models import linear_attention

E, H, SAMPLES = 4, 3, 200
layer_tensor = jit_numpy(head_gauge.layer_tensor)


def draw(seed, num_heads=H):
    return jax.tree.map(
        lambda leaf: leaf[:, :num_heads], draw_stack(np.random.default_rng(seed), 1, H, E, 1.0)
    )


def least_error(params, num_heads):
    """A lower bound on |M - M'|/|M| for every layer M' of ``num_heads`` heads.

    |M_uu - M'_uu|² is at least the sum of the squares of M_uu's later singular values, and its mean
    over u is at most λ|M - M'|², λ the largest eigenvalue of mean (uuᵀ)(uuᵀ)*: a bound for any u.
    """
    tensor = layer_tensor(params)[0]
    u = np.random.default_rng(1).normal(size=(2, SAMPLES, E)) / 2**0.5
    u = u[0] + 1j * u[1]
    squares = np.einsum("sb,sg->sbg", u, u).reshape(SAMPLES, -1)
    largest = np.linalg.eigvalsh((squares.T @ squares.conj()).real / SAMPLES)[-1]
    updates = np.einsum("abgc,sb,sg->sac", tensor, u, u)
    values = np.linalg.svd(updates, compute_uv=False)[:, num_heads:]
    return np.sqrt((values**2).sum(1).mean() / largest / np.sum(tensor**2))


def nearest_layer(params, num_heads, sweeps=60):
    """The least error, and its heads, of least squares for all w_pv and all w_kq in turns."""
    drawn = np.random.default_rng(2).normal(size=(num_heads, E, E))
    starts = (np.asarray(params.w_kq[0, :num_heads]), drawn)
    target = layer_tensor(params)[0].ravel()
    return min((alternate(target, start, sweeps) for start in starts), key=lambda end: end[0])


def alternate(target, w_kq, sweeps):
    units = np.eye(w_kq.size).reshape(-1, *w_kq.shape)
    sides = {1: w_kq}
    for free in (0, 1) * sweeps:
        fixed = sides[1 - free] / np.sqrt(np.mean(sides[1 - free] ** 2))
        if free == 0:
            tensors = np.einsum("nhab,hgc->nabgc", units, fixed)
        else:
            tensors = np.einsum("hab,nhgc->nabgc", fixed, units)
        columns = ((tensors + tensors.swapaxes(2, 3)) / 2).reshape(len(units), -1).T
        solution = np.linalg.lstsq(columns, target, rcond=1e-12)[0]
        sides = {free: solution.reshape(w_kq.shape), 1 - free: fixed}
    error = np.linalg.norm(columns @ solution - target) / np.linalg.norm(target)
    return error, linear_attention.Params(w_kq=sides[1][None], w_pv=sides[0][None])


def distance(params, other):
    tensor, others = layer_tensor(params), layer_tensor(other)
    return np.linalg.norm(tensor - others) / np.linalg.norm(tensor)


@pytest.mark.parametrize("num_heads", [1, 2])
@seeds
def test_no_layer_of_fewer_heads_is_nearer(num_heads, seed):
    params = draw(seed)
    least = least_error(params, num_heads)
    assert least > 0.05
    error, near = nearest_layer(params, num_heads, sweeps=10)
    assert abs(error - distance(params, near)) < 1e-8
    fewer = jax.tree.map(lambda leaf: leaf[:, :num_heads], params)
    assert least <= error
    assert error <= distance(params, fewer) + 1e-9


@seeds
def test_as_many_heads_as_it_has_are_enough(seed):
    params = draw(seed)
    assert least_error(params, H) < 1e-12
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(1, H, H)))[0]
    assert least_error(mix_heads(params, turn), H) < 1e-12


@seeds
def test_one_head_written_as_many_is_found_again(seed):
    one_head = draw(seed, 1)
    many, values = canonical_heads(one_head)
    assert (values > 1e-6 * values.max()).sum() > 1
    assert least_error(many, 1) < 1e-10
    assert nearest_layer(many, 1)[0] < 1e-8


def test_control_the_spectrum_of_the_heads_is_no_bound():
    many, values = canonical_heads(draw(0, 1))
    claimed = np.linalg.norm(values[:, 1:]) / np.linalg.norm(values)
    assert claimed > 0.1 + nearest_layer(many, 1)[0]
