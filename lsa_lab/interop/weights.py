"""Params in safetensors files and as parameter trees of flax, under their own names, and back.

A safetensors file is a header of names, types and shapes, and bytes: loading runs no code. The
trees are the parameters of the modules of ``models.flax_modules``:

    LinenModel(draw, forward).apply(to_linen(params), tokens)         # forward(params, tokens)

    module = NNXModel(draw, forward, rngs=nnx.Rngs(0))
    nnx.update(module, to_nnx(params))
    module(tokens)                                                    # the same
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.files import import_extra, write_file
from lsa_lab.models import linear_attention, transformer

if TYPE_CHECKING:
    from flax import nnx

Params = linear_attention.Params | transformer.Params

_CONFIG = "lsa_lab.config"  # our key in a file's metadata


class SavedWeights(NamedTuple):
    """The content of a file of ours."""

    params: Params
    config: transformer.Config | None
    metadata: dict[str, str]


def to_safetensors(
    params: Any,
    path: str | Path,
    metadata: Mapping[str, str] | None = None,
    *,
    config: transformer.Config | None = None,
) -> None:
    """Write the arrays of Params under their own names, of one model or of runs on an axis R.

    Other trees are written too, such as an nnx.State or the variables of a linen module: an array
    has the name of its path, "params.dense.kernel". A kill leaves the old file or the new one.
    ``metadata`` is text for the reader of the file; ``config`` is what a transformer needs to be
    run again.
    """
    metadata = dict(metadata or {})
    if config is not None:
        metadata[_CONFIG] = json.dumps(dataclasses.asdict(config))
    write_arrays(name_arrays(params), path, metadata)


def from_safetensors(path: str | Path) -> SavedWeights:
    """Read the (params, config, metadata) that ``to_safetensors`` wrote, in the file's dtypes."""
    arrays, metadata = read_arrays(path)
    params = make_params({name: to_jax(name, x) for name, x in arrays.items()}, str(path))
    try:
        fields = json.loads(metadata.pop(_CONFIG, "null"))
        if fields is not None and isinstance(fields["heads"], list):
            fields["heads"] = tuple(fields["heads"])
        config = None if fields is None else transformer.Config(**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} has no config of a transformer: {error!r}") from None
    return SavedWeights(params, config, metadata)


def name_arrays(params: Any) -> dict[str, Array]:
    """Return the arrays of a tree by name; those of Params that are None have no name."""
    if not isinstance(params, Params):
        from flax import nnx

        params = nnx.to_pure_dict(params) if isinstance(params, nnx.State) else params
    paths = jax.tree_util.tree_leaves_with_path(params)
    arrays = {jax.tree_util.keystr(path, simple=True, separator="."): x for path, x in paths}
    for name, x in arrays.items():
        if not hasattr(x, "shape") or jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            raise TypeError(
                f"{name or 'params'} is a {type(x).__name__}, and arrays are saved: give Params, a "
                "tree of flax, or nnx.state(module, nnx.Param)"
            )
    return arrays


def make_params(arrays: Mapping[str, Any], source: str) -> Params:
    """Return Params with arrays of these names: of linear attention (w_kq) or of a transformer."""
    kind = linear_attention.Params if "w_kq" in arrays else transformer.Params
    fields = dataclasses.fields(kind)
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    unknown = sorted(arrays.keys() - {field.name for field in fields})
    missing = sorted(needed - arrays.keys())
    if unknown or missing:
        raise ValueError(
            f"{source} is no Params of {kind.__module__}: {len(unknown)} unknown names "
            f"({', '.join(unknown[:3])}), missing are {', '.join(missing) or 'none'}; weights of "
            "other layouts are read by interop.ahn, von_oswald and gpt2_regression"
        )
    return kind(**arrays)


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays of a safetensors file and its metadata."""
    safetensors = import_extra("safetensors", "interop")
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is no file; expected a safetensors file")
    try:
        with safetensors.safe_open(path, "numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} is no safetensors file ({error}); other formats are not read, pickles never: "
            "convert it where you trust it, by safetensors.torch.save_file(state_dict, path)"
        ) from error


def write_arrays(arrays: Mapping[str, Any], path: str | Path, metadata: dict[str, str]) -> None:
    """Write a safetensors file; a kill leaves the old file or the new one."""
    rows = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_file(path, import_extra("safetensors.numpy", "interop").save(rows, metadata))


def to_jax(name: str, array: np.ndarray) -> Array:
    """Return the array in its own dtype, which must be one that jax is set to hold."""
    if array.dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ValueError(
            f"{name} is float64, and jax would cut it to float32: enable jax_enable_x64, or "
            "convert the file"
        )
    return jnp.asarray(array)


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
