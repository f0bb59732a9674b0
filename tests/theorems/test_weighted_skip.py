"""A stack with a weight c on its skip connection is a plain stack on h_t / cᵗ (derived here).

Sides: ``constructions.scale_skip`` through the models' forward passes, times cᵗ; layers
h ← c h + attention(h) in NumPy, one after the other. docs/theory, "The weighted skip".
"""

import jax
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import constructions, linear_attention, transformer

L, H, E, N = 4, 2, 4, 6
kinds = pytest.mark.parametrize("kind", ["merged", "linear", "softmax"])
merged = jax.jit(linear_attention.forward, static_argnames="keys")
factored = jax.jit(transformer.forward)


def attention(rows, visible, layer, kind):  # [T, e] -> [T, e]
    """What the heads of one layer, (w_kq, w_pv) or (w_q, w_k, w_v, w_o), write to every token."""
    keys, written = rows[:visible], 0.0
    for head in zip(*layer, strict=True):
        if kind == "merged":
            w_kq, w_pv = head
        else:
            w_kq, w_pv = head[1].T @ head[0], head[3] @ head[2]
        scores = rows @ w_kq.T @ keys.T
        if kind == "softmax":
            weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        else:
            weights = scores / N
        written = written + weights @ keys @ w_pv.T
    return written


def disagreement(seed, kind, keys, skipped=constructions.scale_skip):  # [L]
    """The largest of every layer's stream, relative to the size of that stream."""
    rng = np.random.default_rng(seed)
    c, rows = rng.choice([-1, 1]) * rng.uniform(0.3, 1.2), rng.normal(size=(N + 1, E))
    count, scale = (2, 0.1) if kind == "merged" else (4, 0.2)  # too small to explode
    weights = scale * rng.normal(size=(count, L, H, E, E))
    if kind == "merged":
        params, forward = linear_attention.Params(*weights), merged
        trace = forward(skipped(params, c), rows, keys=keys)
    else:
        config = transformer.Config(E, L, H, E, kernel=kind, keys=keys)
        trace = factored(skipped(transformer.Params(*weights), c), rows, config)
    visible, h, apart = N + (keys == "all"), rows, []
    for t, layer in enumerate(weights.swapaxes(0, 1)):
        h = c * h + attention(h, visible, layer, kind)
        apart.append(np.abs(c ** (t + 1) * trace.stream[t + 1] - h).max() / np.abs(h).max())
    return np.array(apart)


@pytest.mark.parametrize("keys", ["demonstrations", "all"])
@kinds
@seeds
def test_a_weighted_skip_is_a_plain_stack_on_the_divided_stream(kind, keys, seed):
    assert disagreement(seed, kind, keys).max() < 1e-10


@kinds
def test_control_one_power_for_all_layers_serves_the_first_alone(kind):
    def flat(params, weight):
        name = "w_pv" if kind == "merged" else "w_o"
        return params.replace(**{name: getattr(params, name) / weight})

    apart = disagreement(0, kind, "all", skipped=flat)
    assert apart[0] < 1e-10
    assert apart[1:].min() > 1e-3
