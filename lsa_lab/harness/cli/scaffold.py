"""A new experiment: the four doors of a small one that works, to be changed door by door.

The files of ``templates/experiment`` are copied as they stand; they import each other relatively,
so that they work in any package. Whatever is refused or goes wrong, nothing is left half-written.
"""

import ast
import importlib.util
import keyword
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from lsa_lab.harness.refusal import RefusalError, refused
from lsa_lab.harness.run.laboratory import DOORS
from lsa_lab.store import results

TEMPLATES = Path(__file__).parent / "templates" / "experiment"
FILES = tuple(f"{part}.py" for part in ("__init__", *DOORS))

_STRING = rb"'[^'\n]*'|\"[^\"\n]*\""
_LISTED = re.compile(
    rb"^(EXPERIMENTS(?:[ \t]*:[^=\n]*)?[ \t]*=[ \t]*)([(\[](?:%b|#.*|[\s,])*[)\]])[ \t]*(?:#.*)?$"
    % _STRING,
    re.MULTILINE,
)
_PACKAGE = '''"""What this laboratory asks: a folder an experiment."""

# In the order in which they are run and reported.
EXPERIMENTS = (
    "{name}",
)
'''
_THEME = '"""What the experiments of this folder share: say it here."""\n'


@dataclass(frozen=True)
class Place:
    """PACKAGE/THEME/NAME, or PACKAGE/NAME, in the working folder."""

    package: Path
    theme: str  # or nothing
    name: str

    @property
    def folder(self) -> Path:
        return self.package / self.theme / self.name

    @property
    def listed(self) -> str:
        """The name as EXPERIMENTS has it."""
        return ".".join(filter(None, (self.theme, self.name)))


def place_of(path: str) -> Place:
    """The place that a path names; refused if a part of it can be no Python package."""
    parts = path.removesuffix("/").split("/")
    if not 2 <= len(parts) <= 3:
        raise RefusalError(f"{path!r}: write PACKAGE/THEME/NAME or PACKAGE/NAME, from this folder")
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part) or part.startswith("_"):
            raise RefusalError(
                f"{part!r} in {path!r} is no name of a Python package: write letters, digits and _,"
                " a letter first"
            )
    if parts[-1] == "all":
        raise RefusalError("'all' names every experiment at once: choose another name")
    return Place(Path(parts[0]), "".join(parts[1:-1]), parts[-1])


def purposes() -> dict[str, str]:
    """What belongs in each file of an experiment: the first line of its template."""
    trees = {file: ast.parse((TEMPLATES / file).read_text(encoding="utf-8")) for file in FILES}
    return {file: (ast.get_docstring(tree) or "").split("\n")[0] for file, tree in trees.items()}


def write(place: Place) -> None:
    """The experiment, the folders above it that are missing, and its name in EXPERIMENTS."""
    with refused(OSError, before=f"{place.folder} cannot be written: "):
        if place.package.exists():
            _add(place)
        else:
            _begin(place)
    importlib.invalidate_caches()  # a running Python sees the new folder


def write_theorem(name: str) -> list[Path]:
    """The test of a small theorem with its control, and the settings of the test process where
    there are none; the files that are new."""
    tests = Path("tests")
    file = tests / "theorems" / f"test_{name}.py"
    if file.exists():
        raise RefusalError(f"{file} exists: choose another name")
    folder = TEMPLATES.parent / "theorem"
    new = {file: folder / "test_theorem.py"}
    if not (tests / "conftest.py").exists():
        new[tests / "conftest.py"] = folder / "conftest.py"
    with refused(OSError, before=f"{file} cannot be written: "):
        for path, template in new.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            results.write(path, template.read_bytes())
    return list(new)


def names_in(place: Place) -> list[str]:
    """The experiments of the package, without their themes."""
    names = _names_of((place.package / "__init__.py").read_bytes()) or []
    return [name.rpartition(".")[2] for name in names]


def _names_of(source: bytes) -> list[str] | None:
    """The names that EXPERIMENTS lists; None if it is not names in brackets, assigned once."""
    matches = _LISTED.findall(source)
    if len(matches) != 1 or len(re.findall(rb"^EXPERIMENTS\b", source, re.MULTILINE)) != 1:
        return None
    try:
        names = ast.literal_eval(matches[0][1].decode())
    except (SyntaxError, ValueError):
        return None
    return list(names) if isinstance(names, tuple | list) else None


def with_name(source: bytes, name: str) -> bytes | None:
    """The source with one more name, the last one, on a line of its own if the closing bracket has
    one; the rest stays, byte for byte. None where the names cannot be read."""
    names, listed = _names_of(source), _LISTED.search(source)
    if names is None or listed is None:
        return None
    inside, start = listed[2][1:-1], listed.start(2) + 1
    last = [each for each in re.finditer(rb"#.*|" + _STRING, inside) if each[0][:1] != b"#"][-1:]
    end = last[0].end() if last else 0
    tail, word = inside[end:], f'"{name}",'.encode()
    comma = b"," if last and not re.match(rb"(?:\s|#.*\n)*,", tail) else b""
    above, newline, below = tail.rpartition(b"\n")
    if last and newline and not below.strip():
        begin = inside[: last[0].start()].rpartition(b"\n")[2]
        newline = b"\r\n" if above.endswith(b"\r") else newline
        indent = b"    " if begin.strip() else begin
        tail = comma + above.removesuffix(b"\r") + newline + indent + word + newline + below
    else:
        tail = comma + tail.rstrip() + b" " * bool(last) + word[: -1 if last else None]
    text = source[: start + end] + tail + source[start + len(inside) :]
    return text if _names_of(text) == [*names, name] else None


def _begin(place: Place) -> None:
    """A package of its own, which may not hide another module."""
    package = place.package
    other = importlib.util.find_spec(package.name)
    if other or Path(f"{package}.py").exists():
        where = (other and other.origin) or f"{package}.py"
        raise RefusalError(
            f"{package} is the name of another Python module, {where}: choose another name, or go "
            "to the folder that holds it"
        )
    _put(place, package)


def _add(place: Place) -> None:
    """The experiment in a package that exists; the doors first, then the name."""
    package, theme = place.package, place.package / place.theme
    _check_package(package)
    init = package / "__init__.py"
    source = init.read_bytes()
    text = with_name(source, place.listed)
    if text is None:
        raise RefusalError(
            f"{init} has no EXPERIMENTS that is a tuple of names in brackets: write "
            "EXPERIMENTS = () there"
        )
    _check_name(place, _names_of(source) or [])
    if theme.exists():
        _check_package(theme)
    top = place.folder if theme.exists() else theme
    _put(place, top)
    try:
        results.write(init, text)
    except OSError:
        shutil.rmtree(top)
        raise


def _check_name(place: Place, names: list[str]) -> None:
    package = place.package
    for name in names:
        if name.rpartition(".")[2] == place.name:
            raise RefusalError(f"{package} has an experiment {name!r}: choose another name")
    if place.folder.exists():
        raise RefusalError(f"{place.folder} exists: choose another name")
    if place.theme in names:
        raise RefusalError(f"{package / place.theme} is an experiment: choose another theme")
    if names and not place.theme and all("." in name for name in names):
        themes = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
        raise RefusalError(
            f"the experiments of {package} lie in themes: write {package}/THEME/{place.name}, "
            f"THEME a new one or {themes}"
        )


def _check_package(folder: Path) -> None:
    if not (folder / "__init__.py").is_file():
        what = "a folder without __init__.py" if folder.is_dir() else "a file"
        raise RefusalError(f"{folder} is {what}, no package: choose another name")


def _put(place: Place, top: Path) -> None:
    """All files at once: written in a folder beside ``top``, the highest that is missing."""
    texts = {file: (TEMPLATES / file).read_bytes() for file in FILES}
    files = {place.folder / file: text for file, text in texts.items()}
    if top != place.folder and place.theme:
        files[place.package / place.theme / "__init__.py"] = _THEME.encode()
    if top == place.package:
        files[top / "__init__.py"] = _PACKAGE.format(name=place.listed).encode()
    staging = top.with_name(f".{top.name}.new")
    shutil.rmtree(staging, ignore_errors=True)  # of a run that was killed
    try:
        for path, text in files.items():
            inside = staging / path.relative_to(top)
            inside.parent.mkdir(parents=True, exist_ok=True)
            inside.write_bytes(text)
        staging.rename(top)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
