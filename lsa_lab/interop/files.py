"""Arrays in safetensors files: our Params and back, and what other files hold.

A safetensors file is a header of names, types and shapes, and bytes: loading runs no code.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.files import import_extra, write_file
from lsa_lab.interop.flax_trees import Params, named, with_names
from lsa_lab.models import linear_attention, transformer
from lsa_lab.store import shards

_CONFIG = "lsa_lab.config"  # our key in a file's metadata


class Saved(NamedTuple):
    """What a file of ours holds."""

    params: Params
    config: transformer.Config | None
    metadata: dict[str, str]


def to_safetensors(
    params: Params,
    path: str | Path,
    metadata: Mapping[str, str] | None = None,
    *,
    config: transformer.Config | None = None,
) -> None:
    """Write the arrays of Params under their own names, of one model or of runs on an axis R.

    A kill leaves the old file or the new one. ``metadata`` is text for whoever reads the file;
    ``config`` is what a transformer needs to be run again.
    """
    facts = dict(metadata or {})
    for key, text in facts.items():
        if not isinstance(text, str) or key == _CONFIG:
            raise ValueError(
                f"metadata has {key!r}: {text!r}; expected text, under another key than {_CONFIG!r}"
            )
    if config is not None:
        facts[_CONFIG] = json.dumps(dataclasses.asdict(config))
    write(named(params), path, facts)


def from_safetensors(path: str | Path) -> Saved:
    """The (params, config, metadata) that ``to_safetensors`` wrote, in the dtypes of the file."""
    arrays, metadata = read(path)
    config = metadata.pop(_CONFIG, None)
    params = with_names({name: as_jax(name, leaf) for name, leaf in arrays.items()}, str(path))
    _check_shapes(params, path)
    try:
        return Saved(params, None if config is None else _config(json.loads(config)), metadata)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} has no config of a transformer: {error!r}") from None


def _check_shapes(params: Params, path: str | Path) -> None:
    """Raise unless the matrices of a head fit together, for one model or runs on an axis R."""
    if isinstance(params, linear_attention.Params):
        shapes, form = [params.w_kq.shape, params.w_pv.shape], "w_kq and w_pv [L, H, e, e]"
        fits = shapes[0] == shapes[1] and shapes[0][-1:] == shapes[0][-2:-1]
    else:
        shapes = [leaf.shape for leaf in (params.w_q, params.w_k, params.w_v, params.w_o)]
        form = "w_q, w_k and w_v [L, H, k, D], and w_o [L, H, D, k]"
        fits = len({*shapes[:3], (*shapes[3][:-2], *shapes[3][:-3:-1])}) == 1
    if not fits or len(shapes[0]) not in (4, 5):
        listed = ", ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{path} holds {listed}: expected {form}, with an axis R in front of runs")


def read(
    path: str | Path, names: Sequence[str] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the named arrays of a safetensors file, by default all, and its metadata."""
    path = Path(path)
    safetensors = import_extra("safetensors", "interop")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; expected a safetensors file")
    try:
        with safetensors.safe_open(path, "numpy") as file:
            names = shards.check_held(path, list(file.keys()), names)
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} is no safetensors file ({error}); other formats are not read, pickles never: "
            "convert it where you trust it, by safetensors.torch.save_file(state_dict, path)"
        ) from error


def write(arrays: Mapping[str, Any], path: str | Path, metadata: dict[str, str]) -> None:
    """Write a safetensors file; a kill leaves the old one or the new one."""
    rows = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_file(path, import_extra("safetensors.numpy", "interop").save(rows, metadata))


def as_jax(name: str, array: np.ndarray) -> Array:
    """The array in its own dtype, which must be one that jax is set to hold."""
    if array.dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ValueError(
            f"{name} is float64, and jax would cut it to float32: enable jax_enable_x64, or "
            "convert the file"
        )
    return jnp.asarray(array)


def _config(fields: dict[str, Any]) -> transformer.Config:
    heads = fields.pop("heads")
    return transformer.Config(heads=tuple(heads) if isinstance(heads, list) else heads, **fields)
