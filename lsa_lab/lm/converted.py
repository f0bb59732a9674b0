"""Decoders that were dequantised once: their leaves in the cache, to be mapped into memory.

A file is named by the sha256 of its GGUF and by the dtype. It holds a sha256 of all that follows,
then the length of a JSON header, the header, and the leaves one after the other. They begin at a
multiple of 64 bytes, so that jax on a CPU computes on the mapped file itself. What is damaged, or
was written by other code, is written anew.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from lsa_lab.files import cache_folder, write_file
from lsa_lab.lm import gguf, leaves
from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import Params

_ALIGNMENT = 64
_DIGEST = hashlib.sha256().digest_size
_TOKENIZER = "tokenizer.ggml."


class Converted(NamedTuple):
    """What a GGUF file holds, dequantised."""

    config: Config
    params: Params
    tokenizer: dict[str, Any]  # the metadata whose names begin so


def load(path: Path, dtype: np.dtype) -> Converted:
    """The decoder of a GGUF file, from the cache if it is there and whole."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    place = cache_folder() / "decoders" / f"{path.stem}-{digest[:16]}-{dtype}.leaves"
    if place.is_file() and place.stat().st_size and (model := _read(place, dtype)):
        return model
    config, names, tensors, metadata = gguf.read(path)
    params = leaves.params(tensors, names, config, dtype)
    tokenizer = {key: value for key, value in metadata.items() if key.startswith(_TOKENIZER)}
    model = Converted(config, params, tokenizer)
    with contextlib.suppress(OSError):  # without room for a copy, the next load takes as long
        _write(model, place)
    return model


def _write(model: Converted, place: Path) -> None:
    rows = {name: leaf for name, leaf in vars(model.params).items() if leaf is not None}
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place.parent).free < 2 * sum(leaf.nbytes for leaf in rows.values()):
        return
    header = {
        "code": _code(),
        "config": dataclasses.asdict(model.config),
        "tokenizer": model.tokenizer,
        "shapes": {name: leaf.shape for name, leaf in rows.items()},
    }
    text = json.dumps(header).encode()
    text += b" " * (-(_DIGEST + 8 + len(text)) % _ALIGNMENT)
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    parts += map(_bytes, rows.values())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    write_file(place, [digest.digest(), *parts])


def _read(place: Path, dtype: np.dtype) -> Converted | None:
    """The decoder as this code has written it, or None."""
    content = np.memmap(place, np.uint8, "r")
    if hashlib.sha256(content[_DIGEST:].data).digest() != content[:_DIGEST].tobytes():
        return None
    start = _DIGEST + 8
    stop = start + int.from_bytes(content[_DIGEST:start].tobytes(), "little")
    header = json.loads(content[start:stop].tobytes())
    if header["code"] != _code():
        return None
    rows = {}
    for name, shape in header["shapes"].items():
        start, stop = stop, stop + math.prod(shape) * dtype.itemsize
        leaf = content[start:stop].view(dtype).reshape(shape)
        rows[name] = jax.device_put(leaf, may_alias=True)
    return Converted(Config(**header["config"]), Params(**rows), header["tokenizer"])


def _bytes(leaf: jax.Array) -> memoryview:
    return np.asarray(leaf).reshape(-1).view(np.uint8).data


@functools.cache
def _code() -> str:
    """A digest of the code that decides what a file becomes."""
    names = ("config.py", "families.py", "gguf.py", "leaves.py", "weights.py")
    sources = [(Path(__file__).parent / name).read_bytes() for name in names]
    return hashlib.sha256(b"".join(sources)).hexdigest()
