"""Checkpoints: the arrays of a computation that was stopped, for one that takes it up again.

The file is sha256(rest), the length of a JSON header, the header (facts that identify the
computation; name, dtype and shape of every array) and the arrays' bytes. It is whole or refused,
and nothing in it is ever executed or unpickled.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lsa_lab.files import write_file
from lsa_lab.store import provenance

_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8  # bytes that hold the header's length
_MOST_DIFFERENCES = 8  # in a sentence

Facts = dict[str, str | int]


def save(path: str | Path, tree: Any, facts: Facts) -> None:
    """Write a pytree of arrays; a kill at any instant leaves the old file or the new one."""
    write_file(path, packed(tree, facts))


def packed(tree: Any, facts: Facts) -> bytes:
    """The content of a checkpoint."""
    leaves = {name: _native(leaf) for name, leaf in _named(tree).items()}
    for name, leaf in leaves.items():
        if leaf.dtype.kind in "OSUMm":
            raise ValueError(f"{name or 'the leaf'} is {leaf.dtype}: a checkpoint keeps numbers")
    layout = {name: [leaf.dtype.name, leaf.shape] for name, leaf in leaves.items()}
    header = json.dumps({"facts": facts, "layout": layout}).encode()
    parts = [len(header).to_bytes(_LENGTH, "little"), header]
    body = b"".join(parts + [leaf.tobytes() for leaf in leaves.values()])
    return hashlib.sha256(body).digest() + body


def load(path: str | Path, like: Any, facts: Facts) -> Any:
    """The saved arrays in the structure of ``like``, whose leaves have a shape and a dtype.

    Raises ValueError if the file is damaged, or if a fact or an array's name, shape or dtype is not
    the one expected.
    """
    return restore(Path(path).read_bytes(), path, like, facts)


def restore(content: bytes, path: str | Path, like: Any, facts: Facts) -> Any:
    """Return what ``load`` does of a file with this content; ``path`` names it in errors."""
    leaves = checked(content, path, facts)
    layout = {name: f"{x.dtype.name} {list(x.shape)}" for name, x in leaves.items()}
    expected = {name: f"{x.dtype.name} {list(x.shape)}" for name, x in _named(like).items()}
    _expect(path, layout, expected)
    return jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in _named(like)])


def read(path: str | Path, facts: Facts) -> dict[str, np.ndarray]:
    """The saved arrays by their paths in the tree, of a file that is whole and has these facts."""
    return checked(Path(path).read_bytes(), path, facts)


def checked(content: bytes, path: str | Path, facts: Facts) -> dict[str, np.ndarray]:
    """The arrays of what ``packed`` made with these facts; ``path`` names it."""
    saved, leaves = unpacked(content, path)
    _expect(path, saved, facts)
    return leaves


def unpacked(content: bytes, path: str | Path) -> tuple[Facts, dict[str, np.ndarray]]:
    """Facts and arrays of what ``packed`` made, by their paths in the tree; ``path`` names it."""
    body = content[_DIGEST:]
    if hashlib.sha256(body).digest() != content[:_DIGEST]:
        raise ValueError(f"checkpoint {path} is damaged or cut short: delete it to start again")
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    facts, arrays = _header(path, body[_LENGTH:end])
    leaves = {}
    try:
        for name, (dtype, shape) in arrays.items():
            leaf = np.frombuffer(body, dtype, math.prod(shape), end)
            leaves[name] = leaf.reshape(shape)
            end += leaf.nbytes
    except (ValueError, TypeError, OverflowError):
        raise _stranger(path) from None
    return facts, leaves


def _header(path: str | Path, text: bytes) -> tuple[dict, dict[str, tuple[np.dtype, list[int]]]]:
    """Facts and layout, whatever else a file with a right checksum may hold."""
    try:
        header = json.loads(text)
        schema = header.get("schema", 1)
        if schema == provenance.SCHEMA:
            # jax knows the names of the types that numpy lacks, bfloat16 for one.
            layout = {
                str(name): (jax.numpy.dtype(kind), list(shape))
                for name, (kind, shape) in header["layout"].items()
            }
            if min((size for _, shape in layout.values() for size in shape), default=0) < 0:
                raise ValueError("an axis below 0")
            return dict(header["facts"]), layout
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _stranger(path) from None
    raise provenance.another_schema(schema, f"checkpoint {path}")


def _stranger(path: str | Path) -> ValueError:
    return ValueError(f"checkpoint {path} is no checkpoint of lsa_lab: delete it")


def digest(tree: Any) -> str:
    """A fact about arrays too large to be one: sha256 of their names, dtypes, shapes and bytes."""
    total = hashlib.sha256()
    for name, leaf in _named(tree).items():
        array = _native(leaf)
        total.update(f"{name} {array.dtype.name} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()


def _native(leaf: Any) -> np.ndarray:
    """The array in this machine's order of bytes, which the name of a dtype does not tell."""
    array = np.asarray(leaf)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _named(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(tree)}


def _expect(path: str | Path, saved: dict, wanted: dict) -> None:
    names = [name for name in wanted | saved if saved.get(name) != wanted.get(name)]
    if not names:
        return
    clauses = [
        f"{name} = {saved.get(name, 'nothing')}, and this call has {wanted.get(name, 'nothing')}"
        for name in names[:_MOST_DIFFERENCES]
    ]
    more = len(names) - len(clauses)
    clauses += [f"and {more} differences more"] * (more > 0)
    raise ValueError(
        f"checkpoint {path} has {'; '.join(clauses)}: delete the file or restore the arguments"
    )
