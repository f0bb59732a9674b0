"""The layers of today with weights that a card can train: two layers of width 32, two heads of
key width 16, a norm and an MLP of width 64; for ``lsa-lab card lsa_lab.card.layers:delta.forward
lsa_lab.card.layers:delta.init``, and an example of a module of one's own."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from lsa_lab.models import recurrent, transformer
from lsa_lab.models.trace import Trace

_WIDTH = 17  # of the tokens [x_t, x_{t-1}, y_{t-1}] at d = 8
_SIZES: dict[str, Any] = dict(num_layers=2, key_width=16, width=32, norm=True, mlp_width=64)


@dataclass(frozen=True)
class Layer:
    """A model of two such layers."""

    config: recurrent.Config | transformer.Config

    def init(self, key: Array) -> Any:
        """Random weights."""
        model = recurrent if isinstance(self.config, recurrent.Config) else transformer
        return model.init(key, self.config)

    def forward(self, params: Any, tokens: Array) -> Trace:
        """The Trace of one prompt's tokens."""
        if isinstance(self.config, recurrent.Config):
            return recurrent.forward(params, tokens, self.config)
        count = len(tokens)  # which the interleaved layout wants to be odd
        rows = jnp.pad(tokens, ((0, 1 - count % 2), (0, 0)))
        trace = transformer.forward(params, rows, self.config)
        return trace.replace(stream=trace.stream[:, :count], heads=trace.heads[:, :, :count])

    def states(self, params: Any, tokens: Array) -> Array:  # [L, H, T, k, v]
        """What a recurrent layer carries."""
        if not isinstance(self.config, recurrent.Config):
            raise TypeError("attention keeps every token, and carries no state")
        return recurrent.states(params, tokens, self.config)


def _recurrent(kind: Any) -> Layer:
    return Layer(recurrent.Config(kind, _WIDTH, num_heads=2, layout="bound", **_SIZES))


additive = _recurrent("additive")
retention = _recurrent("retention")
gla = _recurrent("gla")
ssd = _recurrent("ssd")
lms = _recurrent("lms")
longhorn = _recurrent("longhorn")
delta = _recurrent("delta")
gated_delta = _recurrent("gated_delta")
delta_product = _recurrent("delta_product")
ttt = _recurrent("ttt")
rwkv7 = _recurrent("rwkv7")
mesa = _recurrent("mesa")
softmax = Layer(
    transformer.Config(_WIDTH, heads=2, layout="interleaved", keys="causal", **_SIZES)
)  # fmt: skip
