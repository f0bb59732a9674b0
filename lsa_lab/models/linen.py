"""The models as flax.linen modules, for init, apply and tabulate. They hold no mathematics.

A module's parameters carry the names of the model's Params, so each form turns into the other:
``Params(**variables["params"])``, and ``{"params": {name: array, ...}}`` back.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import flax.linen as nn
import jax
from jax import Array

from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.blocks import Keys
from lsa_lab.models.trace import Trace

P = TypeVar("P", linear_attention.Params, transformer.Params)


class LinearAttention(nn.Module):
    """``linear_attention.forward`` of one prompt; the width of its tokens is read from them."""

    num_layers: int
    num_heads: int
    keys: Keys = "demonstrations"
    normalise: bool = True
    scale: float = 0.02

    @nn.compact
    def __call__(self, tokens: Array, head_mask: Array | None = None) -> Trace:  # [T, e], [L, H]
        def draw(key: Array) -> linear_attention.Params:
            d = tokens.shape[-1] - 1
            return linear_attention.init(
                key, self.num_layers, self.num_heads, d, self.scale, tokens.dtype
            )

        params = _declare(self, draw, linear_attention.Params)
        return linear_attention.forward(
            params, tokens, keys=self.keys, normalise=self.normalise, head_mask=head_mask
        )


class Transformer(nn.Module):
    """``transformer.forward`` of one prompt."""

    config: transformer.Config

    @nn.compact
    def __call__(self, tokens: Array, head_mask: Array | None = None) -> Trace:  # [T, e], [L, H]
        def draw(key: Array) -> transformer.Params:
            return transformer.init(key, self.config, tokens.dtype)

        params = _declare(self, draw, transformer.Params)
        return transformer.forward(params, tokens, self.config, head_mask)


def _declare(module: nn.Module, draw: Callable[[Array], P], kind: type[P]) -> P:
    """One flax parameter for each array that ``draw`` makes, each with a key of its own."""
    shapes = jax.eval_shape(draw, jax.random.key(0))
    names = [field.name for field in dataclasses.fields(kind)]
    present = [name for name in names if getattr(shapes, name) is not None]

    def declare(name: str) -> Array:
        return module.param(name, lambda key: getattr(draw(key), name))

    return kind(**{name: declare(name) for name in present})
