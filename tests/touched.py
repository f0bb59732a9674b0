"""The tests that a change touches, nearest first, for a minute and a half: ``pytest --touched``.

What changed is what differs from origin/main, committed or not. A test is as far from it as its
file is by imports; a file that is no module, or a folder, is read by the tests that name it. Of two
tests as far, the one that rests on fewer modules is first. ``make test`` has the last word.
"""

import ast
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from lsa_lab.harness.run.laboratory import experiments_of
from tools.lint import source

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (*source.FOLDERS, "docs")
SECONDS = 75.0  # tests that begin later are skipped; with starting and the last test, 90


def changes(root: Path = ROOT) -> set[Path]:
    """The files that differ from where this branch left origin/main, those that are new included;
    from the last commit, where there is no origin/main."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        return done.stdout.strip()

    base = git("merge-base", "HEAD", "origin/main") or "HEAD"
    names = git("diff", "--name-only", "--relative", base).splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    return {root / name for name in names}


def module_of(path: Path, root: Path = ROOT) -> str:
    """The name that a file is imported by: of a helper of the tests, its stem."""
    parts = path.relative_to(root).with_suffix("").parts
    if parts[0] in ("tests", "docs") and "toy_lab" not in parts:
        return parts[-1]
    return ".".join(parts).removesuffix(".__init__").removeprefix("tests.harness.")


def imports(path: Path, modules: Iterable[str], root: Path = ROOT) -> set[str]:
    """The modules that a file imports, inside functions as well, and the packages they lie in."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(root).parts[: -node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    parents = {name[:i] for name in names for i, letter in enumerate(name) if letter == "."}
    return (names | parents).intersection(modules)


class Graph:
    """Who imports whom in this repository."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
        modules = {module_of(path, root): path for path in self.files}
        self.uses = {
            path: {modules[name] for name in imports(path, modules, root)} for path in self.files
        }
        for path in self.tests():
            above = {folder / "conftest.py" for folder in path.parents}
            self.uses[path] |= above.intersection(self.files)

    def tests(self) -> list[Path]:
        """The files of tests; a pattern for one, in the library, is none."""
        below = self.root / "tests"
        return [f for f in self.files if f.name.startswith("test_") and below in f.parents]

    def distances(self, changed: set[Path]) -> dict[Path, int]:
        """The files that a change reaches, and after how many imports."""
        own = {f"test_{path.stem}" for path in changed}  # tests mirror what they test
        readers = [test for test in self.tests() if reads(test, changed, self.root)]
        reached = dict.fromkeys(readers, 1)
        reached |= dict.fromkeys([test for test in self.tests() if test.stem in own], 0)
        reached |= dict.fromkeys(changed, 0)
        users: dict[Path, set[Path]] = {path: set() for path in self.files}
        for path, used in self.uses.items():
            for each in used:
                users[each].add(path)
        front, distance = set(changed), 0
        while front:
            distance += 1
            nearest = set().union(*(users.get(path, set()) for path in front))
            front = {path for path in nearest if reached.get(path, distance + 1) > distance}
            reached |= dict.fromkeys(front, distance)
        return reached

    def rests_on(self, path: Path) -> set[Path]:
        """The file, and every file that importing it loads."""
        rest, front = {path}, {path}
        while front := set().union(*(self.uses[each] for each in front)) - rest:
            rest |= front
        return rest


def reads(test: Path, changed: set[Path], root: Path) -> bool:
    """Whether a test names a changed file, or a folder that it lies in, in quotation marks."""
    text = test.read_text("utf-8")
    words = {part for path in changed for part in path.relative_to(root).parts}
    return any(f'"{word}"' in text or f'/{word}"' in text for word in words)


class Touched:
    """The plugin: files that no change reaches are not even imported."""

    def __init__(self) -> None:
        self.changed, self.began = changes(), time.monotonic()
        self.graph, self.experiments = Graph(), experiments_of("experiments")
        self.distances = self.graph.distances(self.changed)
        self.sizes = {path: len(self.graph.rests_on(path)) for path in self.graph.tests()}
        self.reached = {}  # experiments, and how far each is
        for name, experiment in self.experiments.items():
            folder = ROOT.joinpath(*experiment.module.split("."))
            far = [self.distances[path] for path in self.distances if folder in path.parents]
            if far:
                self.reached[name] = 1 + min(far)

    def distance(self, item: pytest.Item) -> int | None:
        """How far a test is from the change; one of an experiment, as far as that is."""
        name = getattr(getattr(item, "callspec", None), "params", {}).get("name")
        near = {item.path} | self.graph.uses[item.path]
        if name in self.experiments and not near & self.changed:
            return self.reached.get(name)
        return self.distances.get(item.path)

    def pytest_report_header(self) -> str:
        return f"touched: {len(self.changed)} changed files, the tests nearest to them first"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore a file of tests that nothing reaches and that is not about every experiment."""
        if collection_path.suffix != ".py" or collection_path in self.distances:
            return None
        about_all = "experiments_of(" in collection_path.read_text("utf-8")
        return None if about_all and self.reached else True

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        distances = {item: self.distance(item) for item in items}
        config.hook.pytest_deselected(items=[i for i in items if distances[i] is None])
        items[:] = [item for item in items if distances[item] is not None]
        items.sort(key=lambda item: (distances[item], self.sizes[item.path]))

    def pytest_runtest_setup(self) -> None:
        if time.monotonic() - self.began > SECONDS:
            pytest.skip("farther from the change than the time reaches: make test")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.changed:
            session.exitstatus = pytest.ExitCode.OK
