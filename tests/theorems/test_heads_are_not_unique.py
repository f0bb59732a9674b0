"""Two layers of linear attention compute the same if and only if M is the same: the part M_{aβγc}
of N = Σ_h w_pv_h ⊗ w_kq_h that is symmetric in β and γ, the indices of S.

So heads may be mixed, W_pv^h ↦ Σ_g A_hg W_pv^g with W_kq^h ↦ Σ_g (A⁻ᵀ)_hg W_kq^g, and a bᵀ, c dᵀ is
the head a cᵀ, b dᵀ. Derived here; docs/theory, "Heads are not unique".
"""

from functools import partial

import jax
import numpy as np
import pytest

import head_gauge
from draws import draw_rotation, draw_stack, forward, jit_numpy, seeds
from head_gauge import canonical_heads, mix_heads, orthogonal_heads
from lsa_lab import prompts
from lsa_lab.analyses import heads
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict

MASKS = ("demonstrations", "all", "causal")
masks = pytest.mark.parametrize("keys", MASKS)
E, H, N = 3, 3, 5
layer_tensor = jit_numpy(head_gauge.layer_tensor)


def stream_error(params, others, tokens, keys="demonstrations"):
    stream, other = (forward(p, tokens, keys=keys).stream for p in (params, others))
    return np.abs(other - stream).max() / (1 + np.abs(stream).max())


def draw(seed):
    """A stack, tokens, and mixings with singular values in [1/2, 2]."""
    rng = np.random.default_rng(seed)
    params, tokens = draw_stack(rng, 2, H, E, 0.2), rng.normal(size=(N + 1, E))
    turns = [[draw_rotation(rng, H) for _ in range(2)] for _ in range(2)]
    mixing = np.stack([left * 2 ** np.linspace(-1, 1, H) @ right for left, right in turns])
    return params, tokens, mixing


@seeds
def test_mixed_heads_are_the_same_stack(seed):
    params, tokens, mixing = draw(seed)
    assert stream_error(params, mix_heads(params, mixing), tokens) < 1e-10


def test_control_mixing_one_side_alone_is_another_stack():
    params, tokens, mixing = draw(0)
    halved = params.replace(w_pv=mix_heads(params, mixing).w_pv)
    assert stream_error(params, halved, tokens) > 1e-3


def products(params):
    return np.einsum("lhef,lhgi->lhefgi", params.w_pv, params.w_kq)


@seeds
def test_orthogonal_heads_do_not_depend_on_the_mixing(seed):
    params, tokens, mixing = draw(seed)
    orthogonal, values = orthogonal_heads(params)
    assert stream_error(params, orthogonal, tokens) < 1e-10
    for side in (orthogonal.w_kq, orthogonal.w_pv):
        rows = side.reshape(2, H, -1)
        gram = rows @ rows.swapaxes(1, 2)
        np.testing.assert_allclose(gram, values[:, None] * np.eye(H), rtol=0, atol=1e-10)
    again, same = orthogonal_heads(mix_heads(params, mixing))
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-10)
    assert (np.diff(values) <= 0).all()
    # A head is known up to a sign, which its product does not have.
    np.testing.assert_allclose(products(again), products(orthogonal), rtol=0, atol=1e-7)


@masks
@seeds
def test_canonical_heads_compute_the_same(keys, seed):
    params, tokens, _ = draw(seed)
    assert stream_error(params, canonical_heads(params)[0], tokens, keys) < 1e-12


def draw_swap(seed):
    """A head of width one, half of it beside half of its swap, and tokens without any zero."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, E))
    writes = np.stack([np.outer(a, b), np.outer(a, c)])[None]
    asks = np.stack([np.outer(c, d), np.outer(b, d)])[None]
    one_head, halves = Params(w_kq=asks[:, :1], w_pv=writes[:, :1]), Params(asks, writes / 2)
    return one_head, halves, rng.normal(size=(N + 1, E))


@masks
@seeds
def test_half_a_head_and_half_its_swap_are_the_head(keys, seed):
    one_head, halves, tokens = draw_swap(seed)
    assert stream_error(one_head, halves, tokens, keys) < 1e-13


def test_control_half_a_head_and_half_of_another_are_not():
    one_head, halves, tokens = draw_swap(0)
    other = halves.replace(w_kq=halves.w_kq.swapaxes(2, 3))  # d cᵀ for c dᵀ
    assert stream_error(one_head, other, tokens) > 1e-2


@seeds
def test_the_spectrum_tells_them_apart_and_the_canonical_heads_do_not(seed):
    one_head, halves, _ = draw_swap(seed)
    assert (orthogonal_heads(halves)[1] > 1e-6).sum() == 2
    (canonical, values), (again, same) = canonical_heads(one_head), canonical_heads(halves)
    size = values.max()
    assert (values > 1e-6 * size).sum() == 2  # one head would do: canonical is not fewest
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-12 * size)
    first, second = (products(p)[0, 0] for p in (canonical, again))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9 * size)


def as_heads(tensor, count=E**2):  # [..., e, e, e, e] -> Params of one layer
    """Heads whose products sum to the tensor, by its singular vectors."""
    left, values, right = np.linalg.svd(tensor.reshape(*tensor.shape[:-4], E**2, E**2))
    shape = *tensor.shape[:-4], 1, count, E, E
    w_pv = (left * values[..., None, :]).swapaxes(-1, -2)[..., :count, :].reshape(shape)
    return Params(w_kq=right[..., :count, :].reshape(shape), w_pv=w_pv)


@partial(jit_numpy, static_argnames="keys")
def written(params, tokens, keys):  # [B, ...], [P, T, e] -> [B, P, T, e]
    def last(params, tokens):
        return linear_attention.forward(params, tokens, keys=keys).stream[-1]

    return jax.vmap(jax.vmap(last, (None, 0)), (0, None))(params, tokens) - tokens[None]


@masks
def test_the_kernel_of_the_map_from_heads_to_layers(keys):
    """N ↦ what is written has rank e² e(e+1)/2; N ↦ the prediction of one layer d e(e+1)/2.

    The query's label slot is empty, as in a prompt: the stream of a first layer hides no more.
    """
    tokens = np.random.default_rng(0).normal(size=(60, 3, E))
    tokens[:, -1, -1] = 0
    basis, symmetric = as_heads(np.eye(E**4).reshape(-1, E, E, E, E), count=1), E * (E + 1) // 2
    rows = written(basis, tokens, keys)  # [e⁴, prompts, tokens, e]
    assert np.linalg.matrix_rank(rows.reshape(E**4, -1), tol=1e-9) == E**2 * symmetric
    assert np.linalg.matrix_rank(rows[:, :, -1, -1], tol=1e-9) == (E - 1) * symmetric
    tensors = jit_numpy(jax.vmap(head_gauge.layer_tensor))(basis).reshape(E**4, -1)
    together = np.concatenate([rows.reshape(E**4, -1), tensors], axis=1)
    assert np.linalg.matrix_rank(together, tol=1e-9) == E**2 * symmetric  # one kernel


@seeds
def test_an_antisymmetric_part_does_not_show_and_control_another_does(seed):
    rng = np.random.default_rng(seed)
    (tensor, part), tokens = rng.normal(size=(2, E, E, E, E)), rng.normal(size=(4, E))
    layers = [as_heads(each) for each in (tensor, tensor + part - part.swapaxes(1, 2))]
    assert stream_error(*layers, tokens) < 1e-10
    np.testing.assert_allclose(*map(layer_tensor, layers), rtol=0, atol=1e-11)
    for other in (part + part.swapaxes(1, 2), part - part.swapaxes(0, 1)):
        assert stream_error(layers[0], as_heads(tensor + other), tokens) > 1e-4


def test_a_stack_does_not_determine_its_layers():
    """Steps of descent commute: the same stream in the end, with the layers in another order."""
    stacks = [
        constructions.gradient_descent(np.array(steps), E - 1) for steps in ((0.3, 0.1), (0.1, 0.3))
    ]
    tokens = np.random.default_rng(0).normal(size=(4, E))
    tokens[-1, -1] = 0
    first, second = (forward(params, tokens).stream[-1] for params in stacks)
    np.testing.assert_allclose(first, second, atol=1e-12)
    assert np.abs(np.subtract(*map(layer_tensor, stacks))).max() > 0.05


def test_a_head_is_worth_what_the_mixing_makes_it():
    """The same function of prompts, and importances that differ: 1 effective head, or more."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(64, N + 1, 2)), rng.normal(size=(64, 1, 2))
    y = (x * w).sum(2)
    batch = prompts.Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    w_kq, w_pv = np.zeros((2, 1, H, E, E))
    w_kq[0, 0, :-1, :-1], w_pv[0, 0, -1, -1] = np.eye(2), -0.5
    turned = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 0.0, -1.0]])[None]

    @jit_numpy
    def effective(params):
        def loss(mask):
            def squared_error(prompt):
                trace = linear_attention.forward(params, prompts.tokens(prompt), head_mask=mask)
                return (predict(trace) - prompt.y_query) ** 2

            return jax.vmap(squared_error)(batch).mean()

        return heads.effective_heads(heads.importance(loss, 1, H))[0]

    assert effective(Params(w_kq, w_pv)) == pytest.approx(1)
    assert effective(mix_heads(Params(w_kq, w_pv), turned)) > 1.5
