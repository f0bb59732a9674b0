"""What may be done to the tokens and weights of any linear attention without changing it.

Every symmetry returns two streams, equal if it is exact and not for a near miss. docs/theory,
"Symmetries of linear attention".
"""

import numpy as np
import pytest

from draws import draw_rotation, draw_stack, forward, relative_error, seeds, stack_sizes
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


SYMMETRIES = permuted_demonstrations, scaled_tokens, another_basis, scaled_weights


@pytest.mark.parametrize("symmetry", SYMMETRIES)
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
