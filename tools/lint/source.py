"""The files that rules read, each parsed once."""

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("lsa_lab", "experiments", "explorer", "notebooks", "benchmarks", "tests", "tools")


class Fault(NamedTuple):
    """What is wrong on a line of a file."""

    path: str
    line: int
    what: str


class Source:
    """A Python file: its text, its nodes, and the module that it is."""

    def __init__(self, root: Path, path: Path):
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text("utf-8")
        self.parts = tuple(self.path.removesuffix(".py").removesuffix("/__init__").split("/"))
        self.package = self.parts if path.name == "__init__.py" else self.parts[:-1]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def module(self) -> str:
        return ".".join(self.parts)

    def fault(self, node: ast.AST | int, what: str) -> Fault:
        return Fault(self.path, getattr(node, "lineno", node), what)


class Tree:
    """The repository, or what a test puts in its place."""

    def __init__(self, root: Path):
        self.root = root

    @cached_property
    def files(self) -> list[Source]:
        paths = [path for folder in FOLDERS for path in sorted((self.root / folder).rglob("*.py"))]
        return [Source(self.root, path) for path in paths]

    def inside(self, *folders: str) -> list[Source]:
        """The Python files below folders."""
        beginnings = tuple(f"{folder}/" for folder in folders)
        return [source for source in self.files if source.path.startswith(beginnings)]

    @cached_property
    def lab(self) -> dict:
        """The experiments by name; their modules are imported when a rule asks them."""
        from lsa_lab.harness.run.laboratory import experiments_of

        return experiments_of("experiments")

    def page(self, name: str) -> str:
        """The text of a file, empty where there is none."""
        path = self.root / name
        return path.read_text("utf-8") if path.is_file() else ""

    def is_module(self, name: str) -> bool:
        """Whether this is a module of the repository, and not what one defines."""
        place = self.root.joinpath(*name.split("."))
        return place.is_dir() or place.with_suffix(".py").exists()

    def imports(self, source: Source) -> Iterator[tuple[str, int]]:
        """The modules that a file imports and the lines, inside functions as well."""
        for node in source.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = source.package[: len(source.package) + 1 - node.level] if node.level else ()
                base = ".".join([*above, *filter(None, [node.module])])
                for alias in node.names:
                    name = f"{base}.{alias.name}"
                    yield (name if self.is_module(name) else base), node.lineno


def line_of(text: str, words: str) -> int:
    """The first line of a text that holds these words; 1 where none does."""
    return text.partition(words)[0].count("\n") + 1 if words in text else 1


def spans(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)
