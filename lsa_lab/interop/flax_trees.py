"""Our Params as parameter trees of Flax, linen and nnx, under their own names, and back.

They are the parameters of the modules of ``models.flax_modules``:

    LinenModel(draw, forward).apply(to_linen(params), tokens)         # forward(params, tokens)

    module = NNXModel(draw, forward, rngs=nnx.Rngs(0))
    nnx.update(module, to_nnx(params))
    module(tokens)                                                    # the same
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jax import Array

from lsa_lab.models import linear_attention, transformer

if TYPE_CHECKING:
    from flax import nnx

Params = linear_attention.Params | transformer.Params

_LISTED = 3  # names that a refusal gives
_KINDS: tuple[type[Params], ...] = (linear_attention.Params, transformer.Params)


def named(params: Params) -> dict[str, Array]:
    """The arrays of Params by name, those that are there."""
    if not isinstance(params, _KINDS):
        raise TypeError(
            f"params is a {type(params).__name__}; expected linear_attention.Params or "
            "transformer.Params"
        )
    return {name: leaf for name, leaf in vars(params).items() if leaf is not None}


def with_names(arrays: Mapping[str, Any], source: str) -> Params:
    """The Params with these names: w_kq and w_pv of linear attention, others of a transformer."""
    kind = linear_attention.Params if "w_kq" in arrays else transformer.Params
    fields = dataclasses.fields(kind)
    unknown = sorted(arrays.keys() - {field.name for field in fields})
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    missing = sorted(needed - arrays.keys())
    if unknown or missing:
        more = f" and {len(unknown) - _LISTED} more" if len(unknown) > _LISTED else ""
        raise ValueError(
            f"{source} has {', '.join(unknown[:_LISTED]) or 'nothing'}{more} too much for the "
            f"Params of {kind.__module__}, and lacks {', '.join(missing) or 'nothing'}: weights of "
            "other layouts are read by interop.ahn, von_oswald and gpt2_regression"
        )
    return kind(**arrays)


def to_linen(params: Params) -> dict[str, dict[str, Array]]:
    """The variables {"params": {name: array}} of a linen module."""
    return {"params": named(params)}


def from_linen(variables: Mapping[str, Mapping[str, Array]]) -> Params:
    """The Params of a linen module's variables; other collections than "params" are left."""
    if "params" not in variables:
        raise ValueError(f"variables has {sorted(variables)}; expected the collection 'params'")
    return with_names(variables["params"], "variables['params']")


def to_nnx(params: Params) -> "nnx.State":
    """The nnx.State with an nnx.Param for each array."""
    from flax import nnx

    return nnx.State({name: nnx.Param(leaf) for name, leaf in named(params).items()})


def from_nnx(state: "nnx.State") -> Params:
    """The Params of an nnx.State, such as ``nnx.state(module, nnx.Param)``."""
    from flax import nnx

    return with_names(nnx.to_pure_dict(state), "the state")
