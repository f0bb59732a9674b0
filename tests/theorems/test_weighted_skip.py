"""A stack with a weight c on its skip connection is a plain stack on h_t / cᵗ.

Derived here. docs/theory, "The weighted skip".
"""

import numpy as np
import pytest

from draws import forward, jit_numpy, seeds
from lsa_lab.models import constructions, linear_attention, transformer

L, H, E, N = 4, 2, 4, 6
factored = jit_numpy(transformer.forward)


def attend(rows, layer, kind):  # [T, e] -> [T, e]
    """What the heads of one layer, (w_kq, w_pv) or (w_q, w_k, w_v, w_o), write to every token."""
    w_kq, w_pv = layer if kind == "merged" else (layer[1].mT @ layer[0], layer[3] @ layer[2])
    weights = rows @ w_kq.mT @ rows[:N].T / N  # [H, T, n]
    if kind == "softmax":
        weights = np.exp(N * weights) / np.exp(N * weights).sum(2, keepdims=True)
    return (weights @ rows[:N] @ w_pv.mT).sum(0)


def errors(seed, kind, scale_skip=constructions.scale_skip):  # [L], of every layer's stream
    rng = np.random.default_rng(seed)
    c, rows = rng.choice([-1, 1]) * rng.uniform(0.3, 1.2), rng.normal(size=(N + 1, E))
    count, scale = (2, 0.1) if kind == "merged" else (4, 0.2)  # too small to explode
    weights = scale * rng.normal(size=(count, L, H, E, E))
    if kind == "merged":
        trace = forward(scale_skip(linear_attention.Params(*weights), c), rows)
    else:
        config = transformer.Config(E, L, H, E, kernel=kind)
        trace = factored(scale_skip(transformer.Params(*weights), c), rows, config)
    h, found = rows, []
    for t, layer in enumerate(weights.swapaxes(0, 1)):
        h = c * h + attend(h, layer, kind)
        found.append(np.abs(c ** (t + 1) * trace.stream[t + 1] - h).max() / np.abs(h).max())
    return np.array(found)


def scale_all_alike(params, weight):
    name = "w_pv" if hasattr(params, "w_pv") else "w_o"
    return params.replace(**{name: getattr(params, name) / weight})


@pytest.mark.parametrize("kind", ["merged", "linear", "softmax"])
@seeds
def test_a_weighted_skip_is_a_plain_stack_on_the_divided_stream(kind, seed):
    assert errors(seed, kind).max() < 1e-10
    # Control: one power for all layers serves the first alone.
    found = errors(0, kind, scale_skip=scale_all_alike)
    assert found[0] < 1e-10
    assert found[1:].min() > 1e-3
