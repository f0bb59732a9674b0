"""What may be done to the tokens and weights of any linear attention without changing it; and it
may be computed as Q(KᵀV): the n x n scores need never be formed.

Every symmetry returns two streams, equal if it is exact and not for a near miss. docs/theory,
"Symmetries of linear attention", "Reassociation".
"""

from functools import partial

import numpy as np
import pytest

from draws import draw_rotation, draw_stack, forward, jit_numpy, relative_error, seeds, stack_sizes
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params


def permuted_demonstrations(params, tokens, rng, exact):
    keys = rng.choice(["demonstrations", "all"]) if exact else "causal"
    order = np.append(rng.permutation(len(tokens) - 1), len(tokens) - 1)
    permuted, plain = (forward(params, t, keys=keys).stream for t in (tokens[order], tokens))
    return permuted, plain[:, order]


def scaled_tokens(params, tokens, rng, exact):  # the first layer writes a cubic of its tokens
    factor = rng.uniform(1.5, 2)
    scaled, plain = (forward(params, c * tokens).heads[0] for c in (-factor, 1.0))
    return scaled, -(factor ** (3 if exact else 2)) * plain


def another_basis(params, tokens, rng, exact):
    """Tokens B e with W_pv → B W_pv B⁻¹ and W_kq → B⁻ᵀ W_kq B⁻¹: the stream is B times it."""
    rotation = draw_rotation(rng, tokens.shape[1])
    B = rotation * np.geomspace(1 / 3, 3, len(rotation)) @ rotation[::-1]
    inverse = np.linalg.inv(B)
    w_kq = inverse.T @ params.w_kq @ inverse if exact else params.w_kq
    gauged = forward(Params(w_kq, B @ params.w_pv @ inverse), tokens @ B.T)
    return gauged.stream, forward(params, tokens).stream @ B.T


def scaled_weights(params, tokens, rng, exact):  # only the product of the two scales matters
    scale = rng.uniform(1.5, 5)
    scaled = Params(params.w_kq * scale, params.w_pv * (1 / scale if exact else scale))
    return forward(scaled, tokens).stream, forward(params, tokens).stream


@pytest.mark.parametrize(
    "symmetry", [permuted_demonstrations, scaled_tokens, another_basis, scaled_weights]
)
@stack_sizes
@seeds
def test_a_symmetry_leaves_the_stream_as_it_is(symmetry, size, seed):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    params = draw_stack(rng, num_layers, num_heads, d + 1)
    tokens = rng.normal(size=(n + 1, d + 1))
    tokens[-1, -1] = 0
    assert relative_error(*symmetry(params, tokens, rng, exact=True)) < 1e-10
    if seed == 0 and size == (3, 2, 5, 3):  # Control: a near miss
        assert relative_error(*symmetry(params, tokens, rng, exact=False)) > 1e-2


READERS = {  # may token t read token i, when the query is the last of T tokens
    "demonstrations": lambda t, i, T: i < T - 1,
    "all": lambda t, i, T: True,
    "causal": lambda t, i, T: i <= t and i < T - 1,
}


@partial(jit_numpy, static_argnames=("keys", "normalise"))
def network(params, tokens, **rule):
    trace = linear_attention.forward(params, tokens, **rule)
    return trace.stream, trace.heads, linear_attention.attention(params, trace, **rule)


def quadratic(params, tokens, rule, normalise):
    """Stream [L+1, T, e], the heads' writes [L, H, T, e] and the scores [L, H, T, T]."""
    stream, writes, scores = [tokens], [], []
    T = len(tokens)
    allowed = np.array([[READERS[rule](t, i, T) for i in range(T)] for t in range(T)])
    for w_kq, w_pv in zip(params.w_kq, params.w_pv, strict=True):
        E = stream[-1]
        share = allowed / (T - 1 if normalise else 1)
        scores.append([share * (E @ kq.T @ E.T) for kq in w_kq])
        writes.append([score @ (E @ pv.T) for score, pv in zip(scores[-1], w_pv, strict=True)])
        stream.append(E + np.sum(writes[-1], axis=0))
    return np.stack(stream), np.stack(writes), np.stack(scores)


@pytest.mark.parametrize("keys", READERS)
@pytest.mark.parametrize("size", [(2, 3, 9, 3), (1, 1, 1, 1), (2, 3, 70, 3)], ids=str)
def test_linear_attention_equals_its_quadratic_form(size, keys):
    """A causal read of 70 tokens is one of more than one chunk."""
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(0)
    params = draw_stack(rng, num_layers, num_heads, d + 1, 0.2)
    tokens = rng.normal(size=(n + 1, d + 1))
    for normalise in (True, False) if n < 70 else (True,):
        rows = tokens / (1 if normalise else n**0.5)
        walked = network(params, rows, keys=keys, normalise=normalise)
        errors = {
            rule: [*map(relative_error, walked, quadratic(params, rows, rule, normalise))]
            for rule in READERS
        }
        assert max(errors.pop(keys)) < 1e-10
        if n == 9:  # Control: another rule of reading
            assert min(map(min, errors.values())) > 1e-2
