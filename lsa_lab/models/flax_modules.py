"""Any model of this package as a module of Flax, linen or nnx; the parameters are its Params.

draw = partial(transformer.init, config=config)
forward = partial(transformer.forward, config=config)
module = LinenModel(draw, forward)         # module.apply(module.init(key, tokens), tokens)
module = NNXModel(draw, forward, rngs=nnx.Rngs(0))                        # module(tokens)
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
from flax import nnx
from jax import Array

from lsa_lab.models.trace import Trace

Draw = Callable[[Array], Any]  # key -> Params
Forward = Callable[..., Trace]  # (params, tokens, head_mask=None)


class LinenModel(nn.Module):
    """A linen module with one parameter for each array of the Params."""

    draw: Draw
    forward: Forward

    @nn.compact
    def __call__(self, tokens: Array, head_mask: Array | None = None) -> Trace:
        """Return ``forward`` of one prompt [T, e], with a gate [L, H] for each head."""
        shapes = jax.eval_shape(self.draw, jax.random.key(0))
        leaves = {
            name: self.param(name, lambda key, name=name: getattr(self.draw(key), name))
            for name, shape in vars(shapes).items()
            if shape is not None
        }
        return self.forward(type(shapes)(**leaves), tokens, head_mask=head_mask)


class NNXModel(nnx.Module):
    """An nnx module with one ``nnx.Param`` for each array of the Params."""

    def __init__(self, draw: Draw, forward: Forward, *, rngs: nnx.Rngs):
        params = draw(rngs.params())
        self.forward, self.kind = forward, type(params)
        self.names = tuple(name for name, leaf in vars(params).items() if leaf is not None)
        for name in self.names:
            setattr(self, name, nnx.Param(getattr(params, name)))

    def __call__(self, tokens: Array, head_mask: Array | None = None) -> Trace:
        """Return ``forward`` of one prompt [T, e], with a gate [L, H] for each head."""
        leaves = {name: getattr(self, name).get_value() for name in self.names}
        return self.forward(self.kind(**leaves), tokens, head_mask=head_mask)
