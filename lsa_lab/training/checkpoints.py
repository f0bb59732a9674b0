"""Arrays in files of NumPy (npz): those of a computation that stops, and can be resumed.

A file holds facts that identify the computation, as JSON, and the arrays. The archive has a
checksum of each array, and nothing in it is ever executed or unpickled.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lsa_lab.files import write_file

_FACTS = "facts"  # no path of a leaf, which begins with "[" or "."

Facts = dict[str, str | int]


def save(path: str | Path, tree: Any, facts: Facts) -> None:
    """Write a pytree of arrays; a kill at any instant leaves the old file or the new one."""
    content = io.BytesIO()
    np.savez(content, **{_FACTS: np.array(json.dumps(facts))}, **_list_arrays(tree))  # type: ignore[arg-type]
    write_file(path, content.getvalue())


def load(path: str | Path, like: Any, facts: Facts) -> Any:
    """Return the saved arrays in the structure of ``like``, whose leaves have a shape and a dtype.

    Raises ValueError if the file is damaged, or if a fact or an array's name, shape or dtype is not
    the one expected.
    """
    saved, leaves = read(path)
    _compare(path, saved, facts)
    expected = _name_leaves(like)
    for name in expected.keys() & leaves.keys():
        if leaves[name].dtype.kind == "V":  # NumPy has no name for bfloat16, and keeps its bytes
            leaves[name] = leaves[name].view(expected[name].dtype)
    _compare(path, _describe(leaves), _describe(expected))
    return jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in expected])


def read(path: str | Path) -> tuple[Facts, dict[str, np.ndarray]]:
    """Return the facts of a file, and its arrays by their paths in the tree."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            leaves = {name: archive[name] for name in archive.files}
        return dict(json.loads(str(leaves.pop(_FACTS)))), leaves
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"checkpoint {path} is damaged ({error!r}): delete it") from None


def hash_arrays(tree: Any) -> str:
    """Return the sha256 of the names, dtypes, shapes and bytes of all arrays."""
    total = hashlib.sha256()
    for name, array in _list_arrays(tree).items():
        total.update(f"{name} {array.dtype.name} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()


def _name_leaves(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(tree)}


def _list_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Return the leaves by their paths, in NumPy and in this machine's order of bytes."""
    arrays = {name: np.asarray(leaf) for name, leaf in _name_leaves(tree).items()}
    return {n: x.astype(x.dtype.newbyteorder("="), copy=False) for n, x in arrays.items()}


def _describe(leaves: dict[str, Any]) -> Facts:
    return {name: f"{leaf.dtype.name} {list(leaf.shape)}" for name, leaf in leaves.items()}


def _compare(path: str | Path, saved: Facts, wanted: Facts) -> None:
    clauses = [
        f"{name} = {saved.get(name, 'nothing')}, and this call has {wanted.get(name, 'nothing')}"
        for name in wanted | saved
        if saved.get(name) != wanted.get(name)
    ]
    if clauses:
        text = "; ".join(clauses[:8])
        raise ValueError(f"checkpoint {path} has {text}: delete the file or restore the arguments")
