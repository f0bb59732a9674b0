"""Params as parameter trees of flax, linen and nnx, under their own names, and back.

They are the parameters of the modules of ``models.flax_modules``:

    LinenModel(draw, forward).apply(to_linen(params), tokens)         # forward(params, tokens)

    module = NNXModel(draw, forward, rngs=nnx.Rngs(0))
    nnx.update(module, to_nnx(params))
    module(tokens)                                                    # the same
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jax import Array

from lsa_lab.interop.weights import Params, make_params, name_arrays

if TYPE_CHECKING:
    from flax import nnx


def to_linen(params: Params) -> dict[str, dict[str, Array]]:
    """Return the variables {"params": {name: array}} of a linen module."""
    return {"params": name_arrays(params)}


def from_linen(variables: Mapping[str, Mapping[str, Array]]) -> Params:
    """Return the Params in the collection "params" of a linen module's variables."""
    if "params" not in variables:
        raise ValueError(f"variables has {sorted(variables)}; expected the collection 'params'")
    return make_params(variables["params"], "variables['params']")


def to_nnx(params: Params) -> "nnx.State":
    """Return an nnx.State with an nnx.Param for each array."""
    from flax import nnx

    return nnx.State({name: nnx.Param(leaf) for name, leaf in name_arrays(params).items()})


def from_nnx(state: "nnx.State") -> Params:
    """Return the Params of an nnx.State, such as ``nnx.state(module, nnx.Param)``."""
    from flax import nnx

    return make_params(nnx.to_pure_dict(state), "the state")
