"""The experiments of a package: scripts with ``CLAIMS`` and ``compute``, found without import."""

import ast
import difflib
import importlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

TIERS = ("smoke", "quick", "full")
PARTS = ("Config", "TIERS", "compute", "CLAIMS", "plot")


class UsageError(Exception):
    """A wrong call; the message is one sentence that says what would do."""


@dataclass(frozen=True)
class Experiment:
    """One script of a package of experiments."""

    package: str
    path: Path  # of the script
    root: Path  # the folder that holds the package and the folder of figures

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def theme(self) -> str:
        """The folder between package and script; empty without one."""
        return ".".join(self.path.relative_to(self.root).parts[self.package.count(".") + 1 : -1])

    @property
    def module(self) -> str:
        return ".".join(filter(None, (self.package, self.theme, self.name)))

    @property
    def figures(self) -> Path:
        """The folder of the committed result."""
        return self.root / "figures" / self.name

    @property
    def registry(self) -> Path:
        """The file of the package with the registrations."""
        return self.root.joinpath(*self.package.split("."), "registered.json")

    @property
    def question(self) -> str:
        """The first line of the docstring."""
        docstring = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        return docstring.partition("\n")[0]

    def load(self) -> ModuleType:
        """Import the script; raise UsageError if a part of an experiment is missing."""
        add_to_path(self.root)
        module = importlib.import_module(self.module)
        missing = [name for name in PARTS if not hasattr(module, name)]
        if missing:
            raise UsageError(f"{self.path} has no {missing[0]}: a script has {', '.join(PARTS)}")
        return module


def find_root(package: str) -> Path:
    """Return the folder that holds a package: this one, or one above it."""
    folder, here = Path(*package.split(".")), Path.cwd()
    for root in (here, *here.parents):
        if (root / folder).is_dir():
            return root
    raise UsageError(
        f"no folder {folder} here or above: write a first experiment with lsa-lab new "
        "my_lab/question, name its folder with --package my_lab, or go to a clone of lsa_lab"
    )


def add_to_path(root: Path) -> None:
    """Let Python import the packages of a folder."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def find(package: str) -> dict[str, Experiment]:
    """Return the experiments of a package by name, from this folder or one above it."""
    root, folder = find_root(package), Path(*package.split("."))
    found: dict[str, Experiment] = {}
    for path in sorted([*(root / folder).glob("*.py"), *(root / folder).glob("*/*.py")]):
        text = path.read_text(encoding="utf-8")
        if "\nCLAIMS" in text and "\ndef compute(" in text:
            if path.stem in found:
                raise UsageError(f"two scripts are called {path.stem}: rename one of them")
            found[path.stem] = Experiment(package, path, root)
    return found


def find_script(file: str) -> Experiment:
    """Return the experiment of a script, whose package is the folder with ``registered.json``.

    Without that file the package is the folder of the script, or the one above it if the working
    directory is above both.
    """
    path = Path(file).resolve()
    folders = list(path.parents[:2])
    packages = [folder for folder in folders if (folder / "registered.json").exists()]
    packages += [folder for folder in folders if folder.parent == Path.cwd()] + folders
    return Experiment(packages[0].name, path, packages[0].parent)


def choose(names: Iterable[str], experiments: dict[str, Experiment]) -> list[Experiment]:
    """Return the experiments with these names or scripts, "all" for all.

    Raises UsageError if a name is unknown, or if there are none.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        name = Path(name).stem if name.endswith(".py") else name
        if name == "all":
            chosen |= experiments
        else:
            check_known("experiment", name, [*experiments, "all"])
            chosen[name] = experiments[name]
    if not chosen:
        raise UsageError("no experiment is named: lsa-lab list shows them")
    return list(chosen.values())


def check_known(kind: str, word: str, known: Iterable[str]) -> None:
    """Raise UsageError if a word is not known, with the nearest known one."""
    known = list(known)
    if word in known:
        return
    near = find_near(word, known)
    many = kind.startswith("experiment") and len(known) > 12
    others = "lsa-lab list shows them" if many else f"there are {', '.join(known)}"
    raise UsageError(f"unknown {kind} {word!r}: {f'did you mean {near}?' if near else others}")


def find_near(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is nearest to a word or contains it, None if none is near."""
    known = list(known)
    near = difflib.get_close_matches(word, known, 1)
    near += [name for name in known if len(word) > 2 and word in name]
    return near[0] if near else None


def relative(path: Path) -> str:
    """Return a path as it is shown: relative to the working directory where it lies below."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
