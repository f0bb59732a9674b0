"""Two layers of linear attention compute the same if and only if M is the same.

M_{aβγc} is the part of N = Σ_h w_pv_h ⊗ w_kq_h that is symmetric in β and γ, the indices of S;
docs/theory, "Heads are not unique". Sides: the forward pass under every key mask; the tensors.
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import constructions, head_gauge, linear_attention

E = 3


@partial(jit_numpy, static_argnames="keys")
def stream(params, tokens, keys="demonstrations"):
    return linear_attention.forward(params, tokens, keys=keys).stream


def as_heads(tensor, count=E**2):  # [..., e, e, e, e] -> Params of one layer
    """Heads whose products sum to the tensor, by its singular vectors."""
    left, values, right = np.linalg.svd(tensor.reshape(*tensor.shape[:-4], E**2, E**2))
    shape = *tensor.shape[:-4], 1, count, E, E
    w_pv = (left * values[..., None, :]).swapaxes(-1, -2)[..., :count, :].reshape(shape)
    return linear_attention.Params(w_kq=right[..., :count, :].reshape(shape), w_pv=w_pv)


layer_tensor = jit_numpy(head_gauge.layer_tensor)
layer_tensors = jit_numpy(jax.vmap(head_gauge.layer_tensor))
descent = jit_numpy(partial(constructions.gradient_descent, d=E - 1))


@partial(jit_numpy, static_argnames="keys")
def written(params, tokens, keys):  # [B, ...], [P, T, e] -> [B, P, T, e]
    def last(params, tokens):
        return linear_attention.forward(params, tokens, keys=keys).stream[-1]

    return jax.vmap(jax.vmap(last, (None, 0)), (0, None))(params, tokens)


@pytest.mark.parametrize("keys", ["demonstrations", "all", "causal"])
def test_the_kernel_of_the_map_from_heads_to_layers(keys):
    """N ↦ what is written has rank e² e(e+1)/2; N ↦ the prediction of one layer d e(e+1)/2.

    The query's label slot is empty, as in a prompt: the stream of a first layer hides no more.
    """
    tokens = np.random.default_rng(0).normal(size=(60, 3, E))
    tokens[:, -1, -1] = 0
    basis = as_heads(np.eye(E**4).reshape(-1, E, E, E, E), count=1)
    rows = written(basis, tokens, keys) - tokens  # [e⁴, prompts, tokens, e]
    symmetric = E * (E + 1) // 2
    assert np.linalg.matrix_rank(rows.reshape(E**4, -1), tol=1e-9) == E**2 * symmetric
    assert np.linalg.matrix_rank(rows[:, :, -1, -1], tol=1e-9) == (E - 1) * symmetric
    tensors = layer_tensors(basis).reshape(E**4, -1)
    both = np.concatenate([rows.reshape(E**4, -1), tensors], axis=1)
    assert np.linalg.matrix_rank(both, tol=1e-9) == E**2 * symmetric  # one kernel


def tensors_and_tokens(seed):
    rng = np.random.default_rng(seed)
    return *rng.normal(size=(2, E, E, E, E)), rng.normal(size=(4, E))


@seeds
def test_an_antisymmetric_part_does_not_show(seed):
    tensor, part, tokens = tensors_and_tokens(seed)
    layers = [as_heads(each) for each in (tensor, tensor + part - part.swapaxes(1, 2))]
    np.testing.assert_allclose(*(stream(p, tokens) for p in layers), rtol=0, atol=1e-10)
    np.testing.assert_allclose(*map(layer_tensor, layers), rtol=0, atol=1e-11)


def test_control_another_part_shows():
    tensor, part, tokens = tensors_and_tokens(0)
    for other in (part + part.swapaxes(1, 2), part - part.swapaxes(0, 1)):
        first, second = (stream(as_heads(each), tokens) for each in (tensor, tensor + other))
        assert np.abs(first - second).max() > 0.1


def test_a_stack_does_not_determine_its_layers():
    """Steps of descent commute: the same stream in the end, with the layers in another order."""
    first, second = (descent(np.array(steps)) for steps in ((0.3, 0.1), (0.1, 0.3)))
    tokens = tensors_and_tokens(0)[2]
    tokens[-1, -1] = 0
    np.testing.assert_allclose(stream(first, tokens)[-1], stream(second, tokens)[-1], atol=1e-12)
    tensors = [layer_tensor(params) for params in (first, second)]
    assert np.abs(tensors[0] - tensors[1]).max() > 0.05
