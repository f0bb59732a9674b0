"""No layer of H heads comes nearer to a layer than the updates by single demonstrations allow.

M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most; derived here. docs/theory, "The fewest heads".
"""

import jax
import numpy as np
import pytest

from draws import draw_rotation, draw_stack, seeds
from head_gauge import as_heads, layer_tensor, mix_heads

E, H, SAMPLES = 4, 3, 200


def keep_heads(params, num_heads):
    return jax.tree.map(lambda leaf: leaf[:, :num_heads], params)


def draw(seed):
    return draw_stack(np.random.default_rng(seed), 1, H, E, 1.0)


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


def nearest_error(params, num_heads, sweeps=60):
    """The error where least squares for all w_pv and all w_kq in turns ends, from two starts."""
    target, errors = layer_tensor(params)[0].ravel(), []
    units = np.eye(num_heads * E * E).reshape(-1, num_heads, E, E)
    for start in (params.w_kq[0, :num_heads], np.random.default_rng(2).normal(size=units[0].shape)):
        fixed = start
        for rule in ("nhab,hgc->nabgc", "nhgc,hab->nabgc") * sweeps:
            tensors = np.einsum(rule, units, fixed / np.sqrt(np.mean(fixed**2)))
            columns = ((tensors + tensors.swapaxes(2, 3)) / 2).reshape(len(units), -1).T
            solution = np.linalg.lstsq(columns, target, rcond=1e-12)[0]
            fixed = solution.reshape(fixed.shape)
        errors.append(np.linalg.norm(columns @ solution - target) / np.linalg.norm(target))
    return min(errors)


@pytest.mark.parametrize("num_heads", [1, 2])
@seeds
def test_no_layer_of_fewer_heads_is_nearer(num_heads, seed):
    params = draw(seed)
    least, error = least_error(params, num_heads), nearest_error(params, num_heads, sweeps=10)
    assert 0.05 < least <= error
    tensors = [layer_tensor(p) for p in (params, keep_heads(params, num_heads))]
    assert error <= np.linalg.norm(np.subtract(*tensors)) / np.linalg.norm(tensors[0]) + 1e-9


@seeds
def test_as_many_heads_as_it_has_are_enough(seed):
    params = draw(seed)
    mixed = mix_heads(params, draw_rotation(np.random.default_rng(0), H)[None])
    assert max(least_error(params, H), least_error(mixed, H)) < 1e-12


@seeds
def test_one_head_written_as_many_is_found_again(seed):
    many, (values,) = as_heads(layer_tensor(keep_heads(draw(seed), 1)))
    assert (values > 1e-6 * values.max()).sum() > 1
    assert least_error(many, 1) < 1e-10
    error = nearest_error(many, 1)
    assert error < 1e-8
    # Control: the spectrum of the heads is no bound.
    assert np.linalg.norm(values[1:]) / np.linalg.norm(values) > 0.1 + error
