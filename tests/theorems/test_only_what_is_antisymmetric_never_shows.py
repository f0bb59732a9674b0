"""Two layers of linear attention compute the same if and only if M is the same.

M_{aβγc} is the part of N = Σ_h w_pv_h ⊗ w_kq_h that is symmetric in β and γ, the indices of S;
docs/theory, "Heads are not unique". Sides: the forward pass under every key mask; the tensors.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import on_host, seeds
from lsa_lab.models import constructions, head_gauge, linear_attention

E = 3


@partial(jax.jit, static_argnames="keys")
def stream(params, tokens, keys="demonstrations"):
    return linear_attention.forward(params, tokens, keys=keys).stream


@partial(jax.jit, static_argnames="count")
def as_heads(tensor, count=E**2):  # [e, e, e, e] -> Params of one layer
    """Heads whose products sum to the tensor, by its singular vectors."""
    left, values, right = jnp.linalg.svd(tensor.reshape(E**2, E**2))
    w_pv = (left * values[None]).T[:count].reshape(1, count, E, E)
    return linear_attention.Params(w_kq=right[:count].reshape(1, count, E, E), w_pv=w_pv)


@pytest.mark.parametrize("keys", ["demonstrations", "all", "causal"])
def test_the_kernel_of_the_map_from_heads_to_layers(keys):
    """N ↦ what is written has rank e² e(e+1)/2; N ↦ the prediction of one layer d e(e+1)/2.

    The query's label slot is empty, as in a prompt: the stream of a first layer hides no more.
    """
    tokens = np.random.default_rng(0).normal(size=(60, 3, E))
    tokens[:, -1, -1] = 0
    basis = jax.vmap(partial(as_heads, count=1))(jnp.eye(E**4).reshape(-1, E, E, E, E))
    written = jax.jit(jax.vmap(lambda p: jax.vmap(lambda each: stream(p, each, keys)[-1])(tokens)))
    rows = np.array(written(basis)) - tokens[None]  # [e⁴, prompts, tokens, e]
    symmetric = E * (E + 1) // 2
    assert np.linalg.matrix_rank(rows.reshape(E**4, -1), tol=1e-9) == E**2 * symmetric
    assert np.linalg.matrix_rank(rows[:, :, -1, -1], tol=1e-9) == (E - 1) * symmetric
    tensors = np.array(jax.vmap(head_gauge.layer_tensor)(basis)).reshape(E**4, -1)
    both = np.concatenate([rows.reshape(E**4, -1), tensors], axis=1)
    assert np.linalg.matrix_rank(both, tol=1e-9) == E**2 * symmetric  # one kernel


@on_host
def tensors_and_tokens(seed):
    key, key_tokens = jax.random.split(jax.random.key(seed))
    return *jax.random.normal(key, (2, E, E, E, E)), jax.random.normal(key_tokens, (4, E))


@seeds
def test_an_antisymmetric_part_does_not_show(seed):
    tensor, part, tokens = tensors_and_tokens(seed)
    layers = [as_heads(each) for each in (tensor, tensor + part - part.swapaxes(1, 2))]
    np.testing.assert_allclose(*(stream(p, tokens) for p in layers), rtol=0, atol=1e-10)
    np.testing.assert_allclose(*map(head_gauge.layer_tensor, layers), rtol=0, atol=1e-11)


def test_control_another_part_shows():
    tensor, part, tokens = tensors_and_tokens(0)
    for other in (part + part.swapaxes(1, 2), part - part.swapaxes(0, 1)):
        first, second = (stream(as_heads(each), tokens) for each in (tensor, tensor + other))
        assert jnp.abs(first - second).max() > 0.1


def test_a_stack_does_not_determine_its_layers():
    """Steps of descent commute: the same stream in the end, with the layers in another order."""
    steps = jnp.array([0.3, 0.1])
    first, second = (constructions.gradient_descent(each, d=E - 1) for each in (steps, steps[::-1]))
    tokens = np.array(tensors_and_tokens(0)[2])
    tokens[-1, -1] = 0
    np.testing.assert_allclose(stream(first, tokens)[-1], stream(second, tokens)[-1], atol=1e-12)
    tensors = [head_gauge.layer_tensor(params) for params in (first, second)]
    assert jnp.abs(tensors[0] - tensors[1]).max() > 0.05
