"""The paths of a tree's leaves: which of them a pattern means, and which are one in each layer.

A path is the keys of a leaf joined by "/", over dicts, lists, dataclasses and ``nnx.State``; dots
within a key, as in the names of PyTorch, separate keys too. A pattern has shell wildcards in each
key and is matched from the right, as ``PurePath.match`` does: ``layers_*/mlp/kernel`` means
``params/layers_3/mlp/kernel`` too.

    >>> tree = {"layers_0": {"mlp": 1.0}, "layers_1": {"mlp": 2.0}}
    >>> print([path for path in by_path(tree) if matches(path, "layers_*/mlp")])
    ['layers_0/mlp', 'layers_1/mlp']
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import jax


def by_path(params: Any) -> dict[str, Any]:
    """The leaves by path. The box that ``nnx.State`` puts around a leaf has no key of its own."""
    entries = jax.tree_util.tree_leaves_with_path(params)
    siblings = Counter(path[:-1] for path, _ in entries)

    def path_of(path: tuple) -> str:
        value = path[-1:] == (jax.tree_util.GetAttrKey("value"),)
        inner = path[:-1] if value and len(path) > 1 and siblings[path[:-1]] == 1 else path
        return jax.tree_util.keystr(inner, simple=True, separator="/").replace(".", "/")

    return {path_of(path): leaf for path, leaf in entries}


def ending(leaves: Mapping[str, Any], name: str) -> list[str]:
    """The paths whose last key is the name."""
    return [path for path in leaves if path.rpartition("/")[2] == name]


def matches(path: str, pattern: str) -> bool:
    """Whether the last keys of a path are those of the pattern."""
    keys, wanted = path.split("/"), pattern.split("/")
    return len(wanted) <= len(keys) and all(map(fnmatchcase, keys[-len(wanted) :], wanted))


def families(paths: list[str], pattern: str) -> list[tuple[str, ...]]:
    """Paths that differ only in a number that the pattern leaves open, the first such, in order."""
    fixed = [not re.search(r"[*?[]", key) for key in pattern.split("/")]

    def numbers(path: str) -> Iterator[tuple[str, int]]:
        keys = path.split("/")
        for i, key in enumerate(keys):
            number = re.search(r"\d+$", key)
            if number and not (i >= len(keys) - len(fixed) and fixed[i - len(keys)]):
                family = [*keys[:i], key[: number.start()] + "*", *keys[i + 1 :]]
                yield "/".join(family), int(number[0])

    sizes = Counter(family for path in paths for family, _ in numbers(path))
    members: dict[str, list[tuple[int, str]]] = {}
    for path in paths:
        shared = ((family, number) for family, number in numbers(path) if sizes[family] > 1)
        family, number = next(shared, (path, 0))
        members.setdefault(family, []).append((number, path))
    return [tuple(path for _, path in sorted(family)) for family in members.values()]


def joined(paths: tuple[str, ...]) -> str:
    """Paths that differ in one number as one, layers_{0,1}/mlp/kernel."""
    if len(paths) == 1:
        return paths[0]
    by_key = zip(*(path.split("/") for path in paths), strict=True)
    return "/".join(keys[0] if len(set(keys)) == 1 else _braced(keys) for keys in by_key)


def _braced(keys: tuple[str, ...]) -> str:
    word = re.sub(r"\d+$", "", keys[0])
    return f"{word}{{{','.join(key.removeprefix(word) for key in keys)}}}"


def expanded(name: str) -> tuple[str, ...]:
    """The paths that ``joined`` has made one."""
    before, numbers, after = re.split(r"[{}]", name)
    return tuple(f"{before}{number}{after}" for number in numbers.split(","))
