"""Linear attention may be computed as Q(KᵀV): the n x n scores need never be formed.

docs/theory, "Reassociation". Sides: the forward pass; scores formed for every pair of tokens, from
who may read whom. Hypothesis: both follow one rule of reading.
"""

from functools import partial

import numpy as np
import pytest

from draws import jit_numpy, relative_error, seeds
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


def disagreement(seed, n, keys, rule, normalise=True):
    rng = np.random.default_rng(seed)
    params = linear_attention.Params(*0.2 * rng.normal(size=(2, 2, 3, 4, 4)))
    tokens = rng.normal(size=(n + 1, 4)) / (1 if normalise else n**0.5)
    walked = network(params, tokens, keys=keys, normalise=normalise)
    stated = quadratic(params, tokens, rule, normalise)
    return [relative_error(ours, theirs) for ours, theirs in zip(walked, stated, strict=True)]


@pytest.mark.parametrize(
    ("n", "keys"), [(9, "demonstrations"), (9, "all"), (9, "causal"), (70, "causal")]
)  # more than one chunk: only a causal read has any
def test_linear_attention_equals_its_quadratic_form(n, keys):
    for seed in range(3):
        assert max(disagreement(seed, n, keys, keys)) < 1e-10


@pytest.mark.parametrize("keys", ["demonstrations", "causal"])
@seeds
def test_the_quadratic_form_holds_without_the_mean_too(keys, seed):
    assert max(disagreement(seed, 9, keys, keys, normalise=False)) < 1e-10


def test_control_another_rule_of_reading_breaks_it():
    for keys, rule in [("demonstrations", "all"), ("all", "causal"), ("causal", "demonstrations")]:
        assert min(disagreement(0, 9, keys, rule)) > 1e-2
