"""Sequence models that a card can train, as examples for models of your own.

Recurrent models and softmax attention have two layers of width 32, two heads of key width 16, a
norm and an MLP of width 64. There are also an LSTM and merged linear attention. For example,
``lsa-lab card lsa_lab.card.layers:delta.forward lsa_lab.card.layers:delta.init --name delta``.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models import linear_attention, recurrent, transformer
from lsa_lab.models.trace import Trace

# LMS is stable for steps below 2/|k|², and |k|² is near 4 at init. With β = softplus(0) = .7, and
# with TTT's steps of any sign, a state explodes over 65 tokens. Both start near β = .05 instead.
_FIRST_STEP = {"lms": (1.0, -3.0), "ttt": (0.1, 0.05)}  # a factor of w_step, and b_step
_SIZES: dict[str, Any] = dict(num_layers=2, key_width=16, width=32, norm=True, mlp_width=64)


@dataclass(frozen=True)
class Layer:
    """A model of two recurrent or attention layers."""

    config: recurrent.Config | transformer.Config
    rule: str  # the known rule that a layer computes if its keys and values are x and y

    def init(self, key: Array, d: int = 8) -> Any:
        """Return random weights for tokens of width 2d + 1."""
        config = replace(self.config, token_width=2 * d + 1)
        if not isinstance(config, recurrent.Config):
            return transformer.init(key, config)
        params: Any = recurrent.init(key, config)
        if config.kind in _FIRST_STEP:
            factor, first = _FIRST_STEP[config.kind]
            return params.replace(w_step=factor * params.w_step, b_step=params.b_step + first)
        return params

    def forward(self, params: Any, tokens: Array) -> Trace:
        """Return the Trace of the tokens of one prompt."""
        config, count = replace(self.config, token_width=tokens.shape[1]), len(tokens)
        if isinstance(config, recurrent.Config):
            return recurrent.forward(params, tokens, config)
        rows = jnp.pad(tokens, ((0, 1 - count % 2), (0, 0)))  # the layout needs an odd number
        trace = transformer.forward(params, rows, config)
        return trace.replace(stream=trace.stream[:, :count], heads=trace.heads[:, :, :count])

    def states(self, params: Any, tokens: Array) -> tuple[Array, ...]:  # [L, H, T, k, v] each
        """Return the states of the recurrent layers; attention keeps every token and has none.

        Mesa carries Σ βkvᵀ and Σ βkkᵀ, and its solution stands twice, for their sizes are equal.
        """
        if not isinstance(self.config, recurrent.Config):
            return ()
        copies = 2 if self.config.kind == "mesa" else 1
        config = replace(self.config, token_width=tokens.shape[1])
        return (recurrent.states(params, tokens, config),) * copies


class MergedLinearAttention:
    """Two layers of two heads on tokens [x_i, y_i]; its card needs ``--query``."""

    rule = "GD++"

    @staticmethod
    def init(key: Array, d: int = 8) -> linear_attention.Params:
        """Return small random weights."""
        return linear_attention.init(key, 2, 2, d, 0.1)

    @classmethod
    def forward(cls, params: linear_attention.Params, tokens: Array) -> Trace:
        """Return the Trace of causal attention."""
        return linear_attention.forward(params, tokens, keys="causal")


class Lstm:
    """Two layers of Hochreiter and Schmidhuber's LSTM, of width 35."""

    @staticmethod
    def init(key: Array, d: int = 8) -> dict[str, Array]:
        """Return weights of variance 1/inputs; the forget gates start near sigmoid(1)."""
        first, second, last = jax.random.split(key, 3)
        inputs, width = 2 * d + 1, 35
        bias = jnp.zeros(4 * width).at[:width].set(1)
        return {
            "first": jax.random.normal(first, (4 * width, inputs + width)) / inputs**0.5 / 2,
            "second": jax.random.normal(second, (4 * width, 2 * width)) / (2 * width) ** 0.5,
            "first_bias": bias,
            "second_bias": bias,
            "out": jax.random.normal(last, (width,)) / width**0.5,
        }

    @staticmethod
    def forward(params: dict[str, Array], tokens: Array) -> Array:  # [T, 2d + 1] -> [T]
        """Return predictions by s ← sigmoid(f) s + sigmoid(i) tanh(c), h = sigmoid(o) tanh(s)."""
        rows = tokens
        for name in ("first", "second"):

            def step(carry: tuple, row: Array, name: str = name) -> tuple[tuple, Array]:
                state, hidden = carry
                inputs = params[name] @ jnp.concatenate([row, hidden]) + params[f"{name}_bias"]
                f, i, o, c = jnp.split(inputs, 4)
                state = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(c)
                hidden = jax.nn.sigmoid(o) * jnp.tanh(state)
                return (state, hidden), hidden

            nothing = jnp.zeros_like(params["out"])
            rows = jax.lax.scan(step, (nothing, nothing), rows)[1]
        return rows @ params["out"]

    @staticmethod
    def states(params: dict[str, Array], tokens: Array) -> Array:  # [4, T, 35]
        """Return zeros of the sizes of s and h of both layers, for a card reads sizes alone."""
        return jnp.zeros((4, len(tokens), *params["out"].shape))


def _recurrent(kind: Any, rule: str, inner: int = 1) -> Layer:
    sizes = dict(num_heads=2, inner=inner, layout="bound", **_SIZES)
    return Layer(recurrent.Config(kind, 17, **sizes), rule)


additive = _recurrent("additive", "linear attention")
retention = _recurrent("retention", "gated linear attention")
gla = _recurrent("gla", "gated linear attention")
ssd = _recurrent("ssd", "gated linear attention")
lms = _recurrent("lms", "LMS")
longhorn = _recurrent("longhorn", "implicit step")
delta = _recurrent("delta", "delta rule")
gated_delta = _recurrent("gated_delta", "gated delta rule")
delta_product = _recurrent("delta_product", "delta rule", inner=2)
ttt = _recurrent("ttt", "LMS")
rwkv7 = _recurrent("rwkv7", "gated delta rule")
mesa = _recurrent("mesa", "forgetting RLS")
_ATTENTION = transformer.Config(17, heads=2, layout="interleaved", keys="causal", **_SIZES)
softmax = Layer(_ATTENTION, "kernel smoother")
