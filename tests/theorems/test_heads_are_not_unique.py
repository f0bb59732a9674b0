"""Two layers of linear attention compute the same if and only if M is the same: the part M_{aβγc}
of N = Σ_h w_pv_h ⊗ w_kq_h that is symmetric in β and γ, the indices of S.

So heads may be mixed, W_pv^h ↦ Σ_g A_hg W_pv^g with W_kq^h ↦ Σ_g (A⁻ᵀ)_hg W_kq^g, and a bᵀ, c dᵀ is
the head a cᵀ, b dᵀ. Derived here; docs/theory, "Heads are not unique".
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import draw_rotation, draw_stack, forward, jit_numpy, seeds
from head_gauge import as_heads, layer_tensor, mix_heads, sum_heads
from lsa_lab import prompts
from lsa_lab.analyses import heads
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict

E, H, N = 3, 3, 5


def stream_error(params, others, tokens):
    stream, other = (forward(p, tokens).stream for p in (params, others))
    return np.abs(other - stream).max() / (1 + np.abs(stream).max())


def products(params):
    return np.einsum("lhef,lhgi->lhefgi", params.w_pv, params.w_kq)


@seeds
def test_mixed_orthogonal_and_canonical_heads_are_the_same_stack(seed):
    rng = np.random.default_rng(seed)
    params, tokens = draw_stack(rng, 2, H, E, 0.2), rng.normal(size=(N + 1, E))
    turns = [[draw_rotation(rng, H) for _ in range(2)] for _ in range(2)]
    mixing = np.stack([left * 2 ** np.linspace(-1, 1, H) @ right for left, right in turns])
    mixed, (orthogonal, values) = mix_heads(params, mixing), as_heads(sum_heads(params))
    for others in (mixed, orthogonal, as_heads(layer_tensor(params))[0]):
        assert stream_error(params, others, tokens) < 1e-10
    again, same = as_heads(sum_heads(mixed))  # which do not depend on the mixing
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-10)
    # A head is known up to a sign, which its product does not have.
    np.testing.assert_allclose(products(again), products(orthogonal), rtol=0, atol=1e-7)
    # Control: mixing one side alone.
    assert stream_error(params, params.replace(w_pv=mixed.w_pv), tokens) > 1e-3


@seeds
def test_half_a_head_and_half_its_swap_are_the_head(seed):
    rng = np.random.default_rng(seed)
    (a, b, c, d), tokens = rng.normal(size=(4, E)), rng.normal(size=(N + 1, E))
    writes = np.stack([np.outer(a, b), np.outer(a, c)])[None]
    halves = Params(np.stack([np.outer(c, d), np.outer(b, d)])[None], writes / 2)
    one_head = halves.replace(w_pv=writes * np.array([1.0, 0.0])[:, None, None])
    assert stream_error(one_head, halves, tokens) < 1e-13
    other = halves.replace(w_kq=halves.w_kq.swapaxes(2, 3))  # Control: d cᵀ for c dᵀ
    assert stream_error(one_head, other, tokens) > 1e-6
    # The spectrum of N tells them apart, and the canonical heads do not.
    assert (as_heads(sum_heads(halves))[1] > 1e-6).sum() == 2
    (canonical, values), (again, same) = (as_heads(layer_tensor(p)) for p in (one_head, halves))
    size = values.max()
    assert (values > 1e-6 * size).sum() == 2  # one head would do: canonical is not fewest
    np.testing.assert_allclose(same, values, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(products(canonical), products(again), rtol=0, atol=1e-9 * size)


@partial(jit_numpy, static_argnames="keys")
def written(params, tokens, keys):  # [B, ...], [P, T, e] -> [B, P, T, e]
    def last(params, tokens):
        return linear_attention.forward(params, tokens, keys=keys).stream[-1]

    return jax.vmap(jax.vmap(last, (None, 0)), (0, None))(params, tokens) - tokens[None]


@pytest.mark.parametrize("keys", ["demonstrations", "all", "causal"])
def test_the_kernel_of_the_map_from_heads_to_layers(keys):
    """N ↦ what is written has rank e² e(e+1)/2; N ↦ the prediction of one layer d e(e+1)/2.

    The query's label slot is empty, as in a prompt: the stream of a first layer hides no more.
    """
    tokens = np.random.default_rng(0).normal(size=(60, 3, E))
    tokens[:, -1, -1] = 0
    units, symmetric = np.eye(E**2).reshape(-1, 1, 1, E, E), E * (E + 1) // 2
    basis = Params(np.concatenate([units] * E**2), np.repeat(units, E**2, axis=0))
    rows = written(basis, tokens, keys)  # [e⁴, prompts, tokens, e]
    assert np.linalg.matrix_rank(rows.reshape(E**4, -1), tol=1e-9) == E**2 * symmetric
    assert np.linalg.matrix_rank(rows[:, :, -1, -1], tol=1e-9) == (E - 1) * symmetric
    tensors = layer_tensor(jax.tree.map(lambda leaf: leaf[:, 0], basis)).reshape(E**4, -1)
    together = np.concatenate([rows.reshape(E**4, -1), tensors], axis=1)
    assert np.linalg.matrix_rank(together, tol=1e-9) == E**2 * symmetric  # one kernel


@seeds
def test_an_antisymmetric_part_does_not_show_and_control_another_does(seed):
    rng = np.random.default_rng(seed)
    (tensor, part), tokens = rng.normal(size=(2, 1, E, E, E, E)), rng.normal(size=(4, E))
    changes = part - part.swapaxes(2, 3), part + part.swapaxes(2, 3), part - part.swapaxes(1, 2)
    params, same, *others = (as_heads(tensor + change)[0] for change in (0, *changes))
    assert stream_error(params, same, tokens) < 1e-10
    np.testing.assert_allclose(layer_tensor(same), layer_tensor(params), rtol=0, atol=1e-11)
    assert min(stream_error(params, other, tokens) for other in others) > 1e-4


def test_a_stack_does_not_determine_its_layers():
    """Steps of descent commute: the same stream in the end, with the layers in another order."""
    orders = np.array([0.3, 0.1]), np.array([0.1, 0.3])
    stacks = [constructions.gradient_descent(steps, E - 1) for steps in orders]
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
