"""Linear attention may be computed as Q(KᵀV): the n x n scores need never be formed.

docs/theory, "Reassociation".
"""

from functools import partial

import numpy as np
import pytest

from draws import draw_stack, jit_numpy, relative_error
from lsa_lab.models import linear_attention

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
