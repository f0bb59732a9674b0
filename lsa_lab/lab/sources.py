"""Digests of code: of a function and of all that it uses within its package."""

import ast
import functools
import hashlib
import inspect
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


def digest_function(function: Any, package: str) -> str:
    """Return a hash of the source of a function and of what it uses in the package.

    Functions, classes and constants of modules of the package are followed; comments and blank
    lines do not count. What other packages define counts by the name alone.
    """
    return _digest(_Collector(package).collect(function))


@functools.cache
def digest_library() -> str:
    """Return a hash of the sources of lsa_lab that compute, which are all but those of the lab."""
    folder = Path(__file__).parents[1]
    return digest_files(path for path in folder.rglob("*.py") if path.parent != folder / "lab")


def digest_files(paths: Iterable[Path]) -> str:
    """Return a hash of the code of Python files, without comments and docstrings."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(paths)]
    for node in itertools.chain.from_iterable(map(ast.walk, trees)):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return _digest(map(ast.dump, trees))


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a string alone, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _digest(texts: Iterable[str]) -> str:
    total = hashlib.sha256()
    for text in texts:
        total.update(text.encode() + b"\0")
    return total.hexdigest()[:16]


class _Collector:
    """A walk from a function along the names that it uses; every object is met once."""

    def __init__(self, package: str):
        self.package, self.seen = package, set[int]()

    def collect(self, value: Any) -> Iterator[str]:
        if isinstance(value, tuple | list):
            for each in value:
                yield from self.collect(each)
        elif isinstance(value, dict):
            yield from self.collect(list(value.items()))
        elif isinstance(value, functools.partial):
            yield from self.collect([value.func, value.args, value.keywords])
        elif not callable(value):
            yield repr(value)
        elif id(value) not in self.seen:
            self.seen.add(id(value))
            yield from self._collect_code(inspect.unwrap(value))

    def _collect_code(self, value: Any) -> Iterator[str]:
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        yield name
        if not self._is_inside(module) or not isinstance(value, type | FunctionType):
            return
        if isinstance(value, FunctionType) and value.__code__.co_filename.startswith("<"):
            return  # made by dataclasses, from fields that the class's own source has
        lines = (line.strip() for line in inspect.getsource(value).splitlines())
        yield "\n".join(line for line in lines if line and not line.startswith("#"))
        functions = [value] if isinstance(value, FunctionType) else vars(value).values()
        for function in functions:
            if isinstance(function, FunctionType):
                for used in self._find_used(function):
                    yield from self.collect(used)

    def _find_used(self, function: FunctionType) -> Iterator[Any]:
        """Yield what a function refers to: globals, attributes of modules, and its closure."""
        names = sorted(_find_names(function.__code__))
        for name in names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType) and self._is_inside(value.__name__):
                yield from (getattr(value, each) for each in names if hasattr(value, each))
            elif value is not None and not isinstance(value, ModuleType):
                yield value
        yield from (cell.cell_contents for cell in function.__closure__ or ())

    def _is_inside(self, module: str | None) -> bool:
        return f"{module}.".startswith(f"{self.package}.")


def _find_names(code: CodeType) -> set[str]:
    nested = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_find_names, nested))
