"""Two layers of linear attention compute the same if and only if M is the same: the part M_{aβγc}
of N = Σ_h w_pv_h ⊗ w_kq_h that is symmetric in β and γ, the indices of S.

So heads may be mixed, W_pv^h ↦ Σ_g A_hg W_pv^g with W_kq^h ↦ Σ_g (A⁻ᵀ)_hg W_kq^g, and a bᵀ, c dᵀ is
the head a cᵀ, b dᵀ. A layer adds Σ_h w_pv_h S w_kq_h e_t to token t, with a symmetric S for every
key mask: update_a = Σ_{βγc} M_{aβγc} S_{βγ} e_c. And no layer of H heads comes nearer to a layer
than the updates by single demonstrations allow: M_uu = Σ_{βγ} M_{aβγc} u_β u_γ has rank H at most.
Derived here; docs/theory, "Heads are not unique", "The fewest heads".
"""

from functools import partial

import jax
import numpy as np
import pytest

from draws import draw_rotation, draw_stack, forward, jit_numpy, relative_error, seeds
from lsa_lab import prompts
from lsa_lab.analyses import heads
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict

E, H, N, SAMPLES = 4, 3, 5, 200
mix_heads = jit_numpy(linear_attention.mix_heads)


def sum_heads(params):  # N of every layer [L, e, e, e, e]
    return np.einsum("lhab,lhgc->labgc", params.w_pv, params.w_kq)


def layer_tensor(params):  # M of every layer [L, e, e, e, e]
    return (sum_heads(params) + sum_heads(params).swapaxes(2, 3)) / 2


def as_heads(tensor):  # Params of e² heads, [L, e²]
    """Return heads √σ u, √σ v with the sum N = Σ_h σ_h u_h v_hᵀ, and the singular values, falling.

    Those of N = M are the same for all layers that compute the same, up to a sign of both sides of
    a head and a rotation among heads with equal σ.
    """
    num_layers, e = tensor.shape[:2]
    left, values, right = np.linalg.svd(tensor.reshape(num_layers, e * e, e * e))
    roots, shape = np.sqrt(values)[..., None], (num_layers, e * e, e, e)
    w_pv, w_kq = (roots * side for side in (left.swapaxes(1, 2), right))
    return Params(w_kq=w_kq.reshape(shape), w_pv=w_pv.reshape(shape)), values


def stream_error(params, others, tokens):
    return relative_error(*(forward(p, tokens).stream for p in (others, params)))


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
    if seed == 0:  # Control: d cᵀ for c dᵀ
        other = halves.replace(w_kq=halves.w_kq.swapaxes(2, 3))
        assert stream_error(one_head, other, tokens) > 1e-2
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
    tensor, part = 0.2 * rng.normal(size=(2, 2, E, E, E, E))
    tokens = rng.normal(size=(N + 1, E))
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
    x, w = rng.normal(size=(64, N + 1, E - 1)), rng.normal(size=(64, 1, E - 1))
    y = (x * w).sum(2)
    batch = prompts.Prompt(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1])
    w_kq, w_pv = np.zeros((2, 1, H, E, E))
    w_kq[0, 0, :-1, :-1], w_pv[0, 0, -1, -1] = np.eye(E - 1), -0.5
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


@seeds
def test_no_layer_of_fewer_heads_is_nearer_and_as_many_as_it_has_are_enough(seed):
    params = draw_stack(np.random.default_rng(seed), 1, H, E, 1.0)
    one, two = (jax.tree.map(lambda leaf, h=h: leaf[:, :h], params) for h in (1, 2))
    for num_heads, fewer in ((1, one), (2, two)):
        least, error = least_error(params, num_heads), nearest_error(params, num_heads, sweeps=10)
        assert 0.05 < least <= error
        tensors = layer_tensor(params), layer_tensor(fewer)
        assert error <= np.linalg.norm(np.subtract(*tensors)) / np.linalg.norm(tensors[0]) + 1e-9
    mixed = mix_heads(params, draw_rotation(np.random.default_rng(0), H)[None])
    assert max(least_error(params, H), least_error(mixed, H)) < 1e-12
    many, (values,) = as_heads(layer_tensor(one))  # one head written as many is found again
    assert (values > 1e-6 * values.max()).sum() > 1
    assert least_error(many, 1) < 1e-10
    error = nearest_error(many, 1)
    assert error < 1e-8
    # Control: the spectrum of the heads is no bound.
    assert np.linalg.norm(values[1:]) / np.linalg.norm(values) > 0.1 + error
